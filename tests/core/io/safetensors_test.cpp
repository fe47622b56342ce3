#include "core/io/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/core/io/expect_error.h"
#include "tests/core/io/safetensors_bytes.h"

namespace tessera {
namespace {

using namespace std::string_literals;

// By default rapidcheck draws its seed from the clock, but a test has to give the same result every time.
[[maybe_unused]] const int kFixedSeed = ::setenv("RC_PARAMS", "seed=1", 0);

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         (a.bytes() == 0 || std::memcmp(a.contiguous().raw(), b.contiguous().raw(), a.bytes()) == 0);
}

void expect_same(const SafetensorsFile& a, const SafetensorsFile& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    ASSERT_TRUE(b.tensors.contains(name)) << name;
    EXPECT_TRUE(same(tensor, b.tensors.at(name))) << name;
  }
}

SafetensorsFile sample() {
  SafetensorsFile file;
  file.metadata["tessera.layout"] = "OHWI";
  file.tensors["conv1.weight"] = Tensor::from<float>({1, -2, 3, 0.5f, 0, std::numeric_limits<float>::infinity()}, {2, 1, 1, 3});
  file.tensors["bn1.num_batches_tracked"] = Tensor::scalar(7, DType::i64);
  file.tensors["bn1.running_mean"] = Tensor::from<double>({1.25, -3}, {2});
  file.tensors["mask"] = Tensor::from<std::uint8_t>({1, 0, 1}, {3});
  file.tensors["index"] = Tensor::from<std::int32_t>({-1, 2}, {1, 2});
  file.tensors["half"] = Tensor::full({5}, 0.25, DType::f16);
  file.tensors["brain"] = Tensor::full({3}, -1.5, DType::bf16);
  file.tensors["none"] = Tensor::zeros({2, 0, 3});
  return file;
}

TEST(Safetensors, ReadsWhatItWrote) {
  const SafetensorsFile file = sample();
  const SafetensorsFile back = decode_safetensors(encode_safetensors(file), "test");
  expect_same(file, back);
  EXPECT_EQ(back.metadata.at("format"), "pt");
  EXPECT_EQ(back.metadata.at("tessera.layout"), "OHWI");
}

TEST(Safetensors, WritesStridedTensorsRowMajor) {
  const Tensor t = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}).permute({1, 0});
  const SafetensorsFile back = decode_safetensors(encode_safetensors({.tensors = {{"t", t}}, .metadata = {}}), "test");
  EXPECT_EQ(back.tensors.at("t").to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

// Every byte is written by hand from the format description.
TEST(Safetensors, WritesTheseBytes) {
  SafetensorsFile file;
  file.metadata["a\"b"] = "\n";
  file.tensors["z"] = Tensor::scalar(1, DType::i32);
  file.tensors["a"] = Tensor::from<std::uint8_t>({9}, {1});
  file.tensors["l"] = Tensor::from<std::int64_t>({2}, {1});
  std::string header = R"({"__metadata__":{"a\"b":"\u000a","format":"pt"},)"
                       R"("l":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                       R"("z":{"dtype":"I32","shape":[],"data_offsets":[8,12]},)"
                       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[12,13]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(encode_safetensors(file), file_of(header, "\2\0\0\0\0\0\0\0\1\0\0\0\x09"s));
}

TEST(Safetensors, SortsByDescendingAlignmentThenName) {
  const std::string bytes = encode_safetensors(sample());
  std::size_t last = 0;
  for (const char* name :
       {"bn1.num_batches_tracked", "bn1.running_mean", "conv1.weight", "none", "index", "brain", "half", "mask"}) {
    const std::size_t at = bytes.find("\""s + name + "\"");
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_GT(at, last) << name;
    last = at;
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
}

TEST(Safetensors, SameContentGivesSameBytes) { EXPECT_EQ(encode_safetensors(sample()), encode_safetensors(sample())); }

TEST(Safetensors, StreamsTheSameBytes) {
  std::string pieces;
  encode_safetensors(sample(), [&](std::string_view piece) { pieces += piece; });
  EXPECT_EQ(pieces, encode_safetensors(sample()));
}

DType any_dtype() {
  return *rc::gen::element(DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8);
}

RC_GTEST_PROP(SafetensorsProperty, RoundTripsAnyNamesShapesAndDtypes, ()) {
  SafetensorsFile file;
  const auto names = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(
      rc::gen::container<std::string>(rc::gen::element('a', 'Z', '.', '/', '"', '\\', '\n', '\t', ' ', '{', '\x01', '\x7f'))));
  for (const std::string& name : names) {
    const auto sizes = *rc::gen::resize(6, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 4)));
    if (sizes.size() > static_cast<std::size_t>(Shape::kMaxRank)) continue;
    const Tensor tensor = Tensor::empty(Shape(std::span(sizes)), any_dtype());
    for (std::size_t i = 0; i < tensor.bytes(); ++i)
      static_cast<std::uint8_t*>(tensor.raw())[i] = *rc::gen::arbitrary<std::uint8_t>();
    file.tensors[name] = tensor;
    file.metadata[name] = name + "\xc3\xa9\xf0\x9f\x98\x80";
  }
  const std::string bytes = encode_safetensors(file);
  const SafetensorsFile back = decode_safetensors(bytes, "test");
  RC_ASSERT(back.tensors.size() == file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) RC_ASSERT(same(tensor, back.tensors.at(name)));
  RC_ASSERT(encode_safetensors(back) == bytes);
}

// For any bytes the reader returns a file or throws IoError.
RC_GTEST_PROP(SafetensorsProperty, AnyFlippedByteIsReadOrRefused, ()) {
  std::string bytes = encode_safetensors(sample());
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size());
  bytes[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
  bytes.resize(*rc::gen::weightedElement<std::size_t>({{3, bytes.size()}, {1, at}}));
  try {
    decode_safetensors(bytes, "test");
  } catch (const IoError&) {
    RC_SUCCEED("refused");
  }
}

TEST(SafetensorsReader, AcceptsAScalar) {
  const SafetensorsFile file =
      decode_safetensors(file_of(R"({"test":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})", "\5\0\0\0"s), "x");
  EXPECT_EQ(file.tensors.at("test").shape(), Shape{});
  EXPECT_EQ(file.tensors.at("test").item(), 5);
}

TEST(SafetensorsReader, AcceptsSizesOfZero) {
  const SafetensorsFile file = decode_safetensors(file_of(R"({"t":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}})"), "x");
  EXPECT_EQ(file.tensors.at("t").shape(), (Shape{2, 0}));
}

TEST(SafetensorsReader, AcceptsNoTensorsAndWhiteSpaceOnBothEnds) {
  EXPECT_TRUE(decode_safetensors(file_of("{}"), "x").tensors.empty());
  EXPECT_TRUE(decode_safetensors(file_of("{}      "), "x").tensors.empty());
  EXPECT_TRUE(decode_safetensors(file_of(" \n\r\t{ } \n"), "x").tensors.empty());
  EXPECT_TRUE(decode_safetensors(file_of(R"({"__metadata__":{}})"), "x").metadata.empty());
}

TEST(SafetensorsReader, AcceptsTensorsInAnyOrderAndWithoutAlignment) {
  const SafetensorsFile file = decode_safetensors(file_of(R"({"b":{"shape":[1],"data_offsets":[1,5],"dtype":"I32"},)"
                                                          R"( "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                                          "\7\5\0\0\0"s),
                                                  "x");
  EXPECT_EQ(file.tensors.at("a").item(), 7);
  EXPECT_EQ(file.tensors.at("b").item(), 5);
}

TEST(SafetensorsReader, DecodesEscapes) {
  const SafetensorsFile file = decode_safetensors(file_of(R"({"__metadata__":{"\u00e9\n\/":"\ud83d\ude00\"\\"}})"), "x");
  EXPECT_EQ(file.metadata.at("\xc3\xa9\n/"), "\xf0\x9f\x98\x80\"\\");
}

TEST(SafetensorsReader, RefusesTheFormatsWholeDtypeListButOurs) {
  for (const char* dtype : {"BOOL", "I8", "I16", "U16", "U32", "U64", "C64", "F8_E5M2"}) {
    const std::string header = str(R"({"t":{"dtype":")", dtype, R"(","shape":[0],"data_offsets":[0,0]}})");
    expect_io_error([&] { decode_safetensors(file_of(header), "x"); }, {"tensor 't' has dtype", dtype, "tessera reads F32"});
  }
}

TEST(SafetensorsWriter, RefusesNamesThatTheReaderWould) {
  const Tensor t = Tensor::scalar(1);
  for (const std::string& name : {""s, "__metadata__"s, "\xff"s, "a\0"s, std::string(5000, 'n')}) {
    EXPECT_THROW(encode_safetensors({.tensors = {{name, t}}, .metadata = {}}), IoError) << name;
  }
}

}  // namespace
}  // namespace tessera
