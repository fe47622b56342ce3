#include "train/data/new_images.h"

#include <gtest/gtest.h>

#include "core/io/npy.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "tests/support/unprivileged.h"
#include "tests/train/data/image_tree.h"
#include "train/data/image_folder.h"
#include "train/data/image_names.h"
#include "train/data/labelled_images.h"

namespace tessera {
namespace {

using testing::Bytes;
using testing::encode_png;

// A data description that holds the given preprocessing: {mean: ..., std: ...} and optional further keys.
Value described(const std::string& preprocessing) {
  Value description = Value::map();
  description.set(kPreprocessingKey, parse_json(preprocessing, "test"));
  return description;
}

const Value kGrey = described(R"({"mean": [0.25], "std": [0.5]})");
const Value kColour = described(R"({"mean": [0.25, 0.5, 0.75], "std": [0.5, 0.25, 1]})");

float normalised(int byte, double mean, double deviation) { return static_cast<float>((byte / 255.0 - mean) / deviation); }

std::vector<float> sample(NewSamples& samples, std::int64_t index) {
  const Tensor out = Tensor::full(samples.field().shape, -99);
  samples.read(index, out);
  return out.to_vector<float>();
}

std::vector<float> only_sample(const NewImages& images, const std::string& path) {
  const auto samples = images.open(path);
  EXPECT_EQ(samples->size(), 1);
  EXPECT_FALSE(samples->numbered());
  EXPECT_EQ(samples->field(), (Field{"image", DType::f32, images.sample()}));
  return sample(*samples, 0);
}

// A .npy file of bytes.
std::string npy_of_bytes(const Shape& shape, const Bytes& bytes) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += str(size, ", ");
  const std::string dict = str("{'descr': '|u1', 'fortran_order': False, 'shape': (", sizes, ")}");
  return str(std::string_view("\x93NUMPY\1\0", 8), static_cast<char>(dict.size()), '\0', dict,
             std::string(bytes.begin(), bytes.end()));
}

class NewImagesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    tree_.write(name, bytes);
    return tree_.path(name);
  }
  // The error message of opening the file, without the leading path.
  std::string fault(const NewImages& images, const std::string& name, const std::string& bytes) const {
    const std::string path = write(name, bytes);
    const std::string message = message_of<IoError>([&] { images.open(path); });
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(std::min(message.size(), path.size() + 2));
  }

  testing::ImageTree tree_;
};

TEST_F(NewImagesTest, OfOneSizeAreNormalisedBytes) {
  const NewImages images(kColour, {1, 3, 5, 3});
  const Bytes pixels = testing::pattern(3, 5);
  const auto values = only_sample(images, write("a.png", encode_png(3, 5, pixels)));
  ASSERT_EQ(values.size(), pixels.size());
  const double mean[] = {0.25, 0.5, 0.75}, deviation[] = {0.5, 0.25, 1};
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(values[i], normalised(pixels[i], mean[i % 3], deviation[i % 3])) << i;
}

TEST_F(NewImagesTest, GreyOnesKeepTheirBytesAndColourBecomesGreyForANetworkOfOneChannel) {
  const NewImages images(kGrey, {1, 1, 4, 1});
  const auto values =
      only_sample(images, write("grey.png", encode_png(1, 4, {0, 77, 128, 255}, {.kind = testing::PngKind::grey})));
  const int grey[] = {0, 77, 128, 255};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(values[i], normalised(grey[i], 0.25, 0.5)) << i;
  // Red, green, blue and (10, 100, 200) become the greys of PIL's convert("L").
  const auto luma = only_sample(images, write("rgb.png", encode_png(1, 4, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 100, 200})));
  const int expected[] = {76, 150, 29, 84};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(luma[i], normalised(expected[i], 0.25, 0.5)) << i;
}

TEST_F(NewImagesTest, OfAnotherSizeOrNoneAreRefused) {
  const NewImages images(kGrey, {1, 3, 5, 1});
  EXPECT_EQ(fault(images, "a.png", encode_png(5, 3, testing::pattern(5, 3))),
            "is 5x3 pixels; the network takes 3x5 ones, which its data set did not resize");
  EXPECT_EQ(fault(images, "b.png", "text"), "not a JPEG or PNG file");
  EXPECT_EQ(fault(images, "c.png", encode_png(3, 5, testing::pattern(3, 5)).substr(0, 60)), "broken PNG: the file ends early");
  const NewImages two(described(R"({"mean": [0, 0], "std": [1, 1]})"), {1, 3, 5, 2});
  EXPECT_EQ(fault(two, "d.png", encode_png(3, 5, testing::pattern(3, 5))), "an image has 1 or 3 channels, the network takes 2");
  EXPECT_EQ(message_of<IoError>([&] { images.open(tree_.path("none.jpg")); }), tree_.path("none.jpg") + ": no such file");
}

// The samples are equal to those of an evaluation of the same files.
TEST_F(NewImagesTest, OfAFolderAreResizedAndCutAsAnEvaluationDoes) {
  tree_.add_split("train", 3);
  tree_.write("train/cat/photo.jpg", testing::encode_jpeg(21, 33, testing::pattern(21, 33)));
  const auto folder = std::make_shared<const ImageFolder>(list_images(tree_.root() / "train"), "train", 11, 8);
  const LabelledImages data(folder, {{0.25, 0.5, 0.75}, {0.5, 0.25, 1}});
  const NewImages images(data.description(), sample_shape(data));
  ASSERT_EQ(data.size(), 7);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const Batch batch = Batch::empty(data.fields(), 1);
    data.assemble(std::array{i}, std::nullopt, batch);
    EXPECT_EQ(only_sample(images, data.origin(i)), batch.input().to_vector<float>()) << data.origin(i);
  }
}

TEST_F(NewImagesTest, ArraysOfBytesAreImages) {
  const NewImages images(kGrey, {1, 1, 2, 1});
  const auto two = images.open(write("x.npy", npy_of_bytes({2, 1, 2, 1}, {0, 51, 102, 255})));
  EXPECT_EQ(two->size(), 2);
  EXPECT_TRUE(two->numbered());
  EXPECT_EQ(sample(*two, 1), (std::vector<float>{normalised(102, 0.25, 0.5), normalised(255, 0.25, 0.5)}));
  EXPECT_EQ(sample(*two, 0), (std::vector<float>{normalised(0, 0.25, 0.5), normalised(51, 0.25, 0.5)}));
  EXPECT_EQ(only_sample(images, write("one.npy", npy_of_bytes({1, 2, 1}, {0, 51}))), sample(*two, 0));
  EXPECT_EQ(fault(images, "y.npy", npy_of_bytes({2, 1, 1}, {0, 51})),
            "is u8 [2, 1, 1]; the network takes u8 [n, 1, 2, 1] or [1, 2, 1]");
  EXPECT_EQ(fault(images, "z.npy", npy_of_bytes({0, 1, 2, 1}, {})), "is [0, 1, 2, 1]: holds no sample");
  EXPECT_EQ(fault(images, "bad.npy", "text, but long enough"), "is no NumPy array: it does not begin with \\x93NUMPY");
}

TEST_F(NewImagesTest, ArraysOfBytesAreResizedWhereFilesAre) {
  const NewImages images(described(R"({"mean": [0, 0, 0], "std": [1, 1, 1], "resize": 6, "crop": 4})"), {1, 4, 4, 3});
  const Bytes pixels = testing::pattern(9, 13);
  EXPECT_EQ(only_sample(images, write("x.npy", npy_of_bytes({9, 13, 3}, pixels))),
            only_sample(images, write("x.png", encode_png(9, 13, pixels))));
  EXPECT_EQ(fault(images, "y.npy", npy_of_bytes({2, 2, 1}, {1, 2, 3, 4})),
            "is u8 [2, 2, 1]; the network takes u8 [n, height, width, 3] or [height, width, 3]");
  EXPECT_NE(fault(images, "z.npy", npy_of_bytes({0, 4, 3}, {})).find("is u8 [0, 4, 3]; "), std::string::npos);
}

TEST_F(NewImagesTest, ArraysOfNumbersAreTakenAsTheyAre) {
  const NewImages images(kGrey, {1, 1, 2, 1});
  const auto three = images.open(write("x.npy", encode_npy(std::vector<float>{1, -2, 3, 4, 5, 6e20F}, {3, 1, 2, 1})));
  EXPECT_EQ(three->size(), 3);
  EXPECT_EQ(sample(*three, 0), (std::vector<float>{1, -2}));
  EXPECT_EQ(sample(*three, 2), (std::vector<float>{5, 6e20F}));
  EXPECT_EQ(fault(images, "y.npy", encode_npy(std::vector<float>{1, 2}, {2})),
            "is f32 [2]; the network takes f32 [n, 1, 2, 1] or [1, 2, 1]");
}

TEST_F(NewImagesTest, WhatDoesNotDescribeThemIsRefused) {
  const auto message = [](const Value& description, const Shape& input) {
    return message_of<ConfigError>([&] { NewImages(description, input); });
  };
  EXPECT_EQ(message(Value::map(), {1, 4, 4, 3}),
            "the network was saved without 'preprocessing', which tells how images are brought to it");
  EXPECT_EQ(message(kGrey, {1, 7}), "the network takes [1, 7]; an image is [1, h, w, c]");
  EXPECT_NE(message(kGrey, {1, 4, 4, 3}).find("images have 3 channels"), std::string::npos);
  EXPECT_NE(message(described(R"({"mean": [0], "std": [0]})"), {1, 4, 4, 1}).find("must be positive"), std::string::npos);
  EXPECT_NE(message(described(R"({"mean": [0], "std": [1], "crop": 4})"), {1, 4, 4, 1}).find("needs both of resize and crop"),
            std::string::npos);
  const char* const kCrop = R"({"mean": [0, 0, 0], "std": [1, 1, 1], "resize": 8, "crop": 5})";
  EXPECT_EQ(message(described(kCrop), {1, 5, 5, 3}), "");
  EXPECT_EQ(message(described(kCrop), {1, 4, 4, 3}), "preprocessing: crop is 5 of resize 8, the network takes [4, 4, 3]");
  EXPECT_NE(message(described(R"({"mean": [0], "std": [1], "scale": 4})"), {1, 4, 4, 1}).find("scale"), std::string::npos);
}

TEST_F(NewImagesTest, AFolderStandsForTheImagesBelowItByName) {
  for (const char* name : {"b.PNG", "a.jpg", "sub/c.jpeg", ".hidden.png", "notes.txt", "x.npy"}) tree_.write(name, "x");
  EXPECT_EQ(images_below(tree_.root()),
            (std::vector<FoundFile>{{tree_.path("a.jpg")}, {tree_.path("b.PNG")}, {tree_.path("sub/c.jpeg")}}));
  tree_.write("empty/notes.txt", "x");
  EXPECT_EQ(message_of<IoError>([&] { images_below(tree_.path("empty")); }),
            tree_.path("empty") + ": has no .jpg, .jpeg or .png file");
  std::filesystem::create_directory_symlink(tree_.root(), tree_.root() / "sub/again");
  EXPECT_NE(message_of<IoError>([&] { images_below(tree_.root()); }).find("is more than 16 folders deep"), std::string::npos);
}

TEST_F(NewImagesTest, AFolderBelowThatMayNotBeListedIsNamed) {
  for (const char* name : {"a.jpg", "sub/b.jpg", "z.jpg"}) tree_.write(name, "x");
  namespace fs = std::filesystem;
  constexpr auto kEveryoneReads =
      fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec;
  fs::permissions(tree_.root(), kEveryoneReads);
  fs::permissions(tree_.root() / "sub", fs::perms::none);
  {
    const testing::Unprivileged user;
    if (!user.given_up()) GTEST_SKIP() << "root cannot become another user";
    EXPECT_EQ(images_below(tree_.root()),
              (std::vector<FoundFile>{
                  {tree_.path("a.jpg")}, {tree_.path("sub"), "cannot list: Permission denied"}, {tree_.path("z.jpg")}}));
    EXPECT_EQ(message_of<IoError>([&] { images_below(tree_.root() / "sub"); }),
              tree_.path("sub") + ": cannot list: Permission denied");
  }
  fs::permissions(tree_.root() / "sub", fs::perms::owner_all);
}

}  // namespace
}  // namespace tessera
