#include "core/io/npy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

// A file of version `major`.0 with this dict, followed by these bytes.
std::string npy(const std::string& dict, const std::string& data, char major = 1) {
  const std::string length{static_cast<char>(dict.size() & 0xFF), static_cast<char>(dict.size() >> 8)};
  return std::string("\x93NUMPY", 6) + major + '\0' + length + (major == 1 ? "" : std::string(2, '\0')) + dict + data;
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

class Npy : public ::testing::Test {
 protected:
  NpyFile open(const std::string& bytes) const {
    write_file_atomically(real_vfs(), path_, bytes);
    return NpyFile(path_);
  }
  // The error message without the path in front.
  std::string fault(const std::string& bytes) const {
    const std::string message = message_of<IoError>([&] { open(bytes); });
    EXPECT_TRUE(message.starts_with(path_ + ": ")) << message;
    return message.substr(std::min(message.size(), path_.size() + 2));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "x.npy";
};

TEST_F(Npy, WhatIsWrittenComesBack) {
  const std::vector<float> values{1, -2.5F, 3, 4e-30F, 5, 6};
  for (const Shape& shape : {Shape{2, 3}, Shape{6}, Shape{1, 6, 1}}) {
    NpyFile file = open(encode_npy(values, shape));
    EXPECT_EQ(file.dtype(), DType::f32);
    EXPECT_EQ(file.shape(), shape);
    std::vector<float> read(6);
    file.read(0, 6, read.data());
    EXPECT_EQ(read, values);
    file.read(3, 2, read.data());
    EXPECT_EQ(read[0], values[3]);
    EXPECT_EQ(read[1], values[4]);
  }
  EXPECT_EQ(open(encode_npy({}, Shape{0, 3})).shape(), (Shape{0, 3}));
  EXPECT_EQ(open(encode_npy(std::vector<float>{7}, Shape{})).shape(), Shape{});
}

// The bytes of numpy.save(np.array([[1, 2]], "float32")): 128 bytes of header with its prefix, elements at a multiple of 64.
TEST_F(Npy, IsWrittenAsNumPyWritesIt) {
  const std::string bytes = encode_npy(std::vector<float>{1, 2}, Shape{1, 2});
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
  header.append(128 - 10 - 1 - header.size(), ' ');
  EXPECT_EQ(bytes.substr(0, 128), str(std::string_view("\x93NUMPY\x01\x00\x76\x00", 10), header, '\n'));
  EXPECT_EQ(bytes.substr(128), std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  EXPECT_NE(encode_npy(std::vector<float>{1, 2}, Shape{2}).find("'shape': (2,), }"), std::string::npos);
}

TEST_F(Npy, ReadsEveryVersionAndNotation) {
  for (const char major : {'\1', '\2', '\3'}) {
    NpyFile file = open(npy("{ \"shape\":(2 ,2),'fortran_order' : False,'descr':\"|u1\"}", "abcd", major));
    EXPECT_EQ(file.dtype(), DType::u8);
    EXPECT_EQ(file.shape(), (Shape{2, 2}));
    char last = 0;
    file.read(3, 1, &last);
    EXPECT_EQ(last, 'd');
  }
}

TEST_F(Npy, RefusesWhatIsNoArray) {
  EXPECT_EQ(fault(""), "ends within its first 8 bytes");
  EXPECT_EQ(fault("PK\x03\x04 a zip of arrays"), "is no NumPy array: it does not begin with \\x93NUMPY");
  EXPECT_EQ(fault(npy(dict("'|u1'", "False", "(1,)"), "a", 4)), "is a NumPy array of version 4.0; 1.0 to 3.0 are read");
  EXPECT_EQ(fault(std::string("\x93NUMPY\1\0\x10", 9)), "ends within the length of its header");
  EXPECT_EQ(fault(std::string("\x93NUMPY\1\0\x10\0{", 11)), "ends within its header");
  EXPECT_EQ(fault(std::string("\x93NUMPY\2\0\xff\xff\xff\x7f{", 13)), "has a header of 2147483647 bytes; at most 65536 are read");
  EXPECT_EQ(message_of<IoError>([&] { NpyFile("/nowhere/x.npy"); }), "/nowhere/x.npy: no such file");
  EXPECT_EQ(message_of<IoError>([&] { NpyFile(folder_.path().string()); }), folder_.path().string() + ": is no regular file");
}

TEST_F(Npy, RefusesABrokenHeader) {
  const auto broken = [&](const std::string& text) { return fault(npy(text, "a")); };
  EXPECT_EQ(broken("'descr'"), "broken header: '{' is missing");
  EXPECT_EQ(broken("{'descr"), "broken header: a quote is not closed");
  EXPECT_EQ(broken("{descr: 1}"), "broken header: a text in quotes is missing");
  EXPECT_EQ(broken("{'descr' '|u1'}"), "broken header: ':' is missing");
  EXPECT_EQ(broken("{'size': 1}"), "broken header: unknown key 'size'");
  EXPECT_EQ(broken(dict("'|u1'", "0", "(1,)")), "broken header: True or False is missing");
  for (const char* shape : {"(-1,)", "(x,)", "(99999999999999999999,)", "(1.5,)"}) {
    EXPECT_NE(broken(dict("'|u1'", "False", shape)).find("broken header: "), std::string::npos) << shape;
  }
  const std::string rule = "broken header: must be descr, fortran_order and shape, each once, and nothing behind them";
  EXPECT_EQ(broken("{'descr': '|u1', 'shape': (1,)}"), rule);
  EXPECT_EQ(broken("{'descr': '|u1', 'shape': (1,), 'fortran_order': False, 'shape': (1,)}"), rule);
  EXPECT_EQ(broken(dict("'|u1'", "False", "(1,)") + "x"), rule);
}

TEST_F(Npy, RefusesOtherElementsAndOrders) {
  EXPECT_EQ(fault(npy(dict("'>f4'", "False", "(1,)"), "abcd")), "is big-endian (>f4); must be <f4 or |u1: x.astype(\"<f4\")");
  EXPECT_EQ(fault(npy(dict("'<f8'", "False", "(1,)"), "abcdefgh")),
            "holds elements <f8; must be <f4 or |u1: x.astype(\"float32\")");
  EXPECT_EQ(fault(npy(dict("[('a', '<f4')]", "False", "(1,)"), "abcd")), "holds records; must be one array of float32 or uint8");
  EXPECT_EQ(fault(npy(dict("'|u1'", "True", "(2, 2)"), "abcd")),
            "lies column by column (fortran_order); must lie row by row: numpy.ascontiguousarray(x)");
}

TEST_F(Npy, RefusesAnotherSizeThanItsShapes) {
  const std::string head = npy(dict("'<f4'", "False", "(2, 3)"), "");
  const std::string needed = str("; an array of f32 [2, 3] has ", head.size() + 24);
  EXPECT_EQ(fault(head + std::string(23, 'x')), str("has ", head.size() + 23, " bytes", needed));
  EXPECT_EQ(fault(head + std::string(25, 'x')), str("has ", head.size() + 25, " bytes", needed));
  EXPECT_EQ(fault(npy(dict("'<f4'", "False", "(4294967296, 4294967296)"), "")), "has a shape of more than 2^40 elements");
  EXPECT_EQ(fault(npy(dict("'<f4'", "False", "(0, 4294967296, 4294967296)"), "")), "has a shape of more than 2^40 elements");
  EXPECT_EQ(fault(npy(dict("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), "abcd")), "has 9 dimensions; at most 8 are read");
}

TEST_F(Npy, NamesTheFileThatIsCutOffWhileItIsRead) {
  NpyFile file = open(npy(dict("'|u1'", "False", "(100000,)"), std::string(100000, 'x')));
  std::filesystem::resize_file(path_, 1000);
  char byte = 0;
  EXPECT_EQ(message_of<IoError>([&] { file.read(99999, 1, &byte); }), path_ + ": cannot be read at element 99999");
}

}  // namespace
}  // namespace tessera
