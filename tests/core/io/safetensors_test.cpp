#include "core/io/safetensors.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/core/io/expect_error.h"

namespace tessera {
namespace {

using namespace std::string_literals;

// rapidcheck draws its seed from the clock unless told; a test has to say the same twice.
[[maybe_unused]] const int kFixedSeed = ::setenv("RC_PARAMS", "seed=1", 0);

std::string file_of(std::string_view header, std::string_view data, std::uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header).append(data);
}
std::string file_of(std::string_view header, std::string_view data = "") { return file_of(header, data, header.size()); }

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

// Every byte, written by hand from the format description.
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
  for (const char* name : {"bn1.num_batches_tracked", "bn1.running_mean", "conv1.weight", "none", "index", "brain", "half", "mask"}) {
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
    for (std::size_t i = 0; i < tensor.bytes(); ++i) static_cast<std::uint8_t*>(tensor.raw())[i] = *rc::gen::arbitrary<std::uint8_t>();
    file.tensors[name] = tensor;
    file.metadata[name] = name + "\xc3\xa9\xf0\x9f\x98\x80";
  }
  const std::string bytes = encode_safetensors(file);
  const SafetensorsFile back = decode_safetensors(bytes, "test");
  RC_ASSERT(back.tensors.size() == file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) RC_ASSERT(same(tensor, back.tensors.at(name)));
  RC_ASSERT(encode_safetensors(back) == bytes);
}

// Whatever bytes come, the reader returns a file or throws IoError.
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
  const SafetensorsFile file = decode_safetensors(file_of(R"({"test":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})", "\5\0\0\0"s), "x");
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
                                                          R"( "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "\7\5\0\0\0"s), "x");
  EXPECT_EQ(file.tensors.at("a").item(), 7);
  EXPECT_EQ(file.tensors.at("b").item(), 5);
}

TEST(SafetensorsReader, DecodesEscapes) {
  const SafetensorsFile file = decode_safetensors(file_of(R"({"__metadata__":{"\u00e9\n\/":"\ud83d\ude00\"\\"}})"), "x");
  EXPECT_EQ(file.metadata.at("\xc3\xa9\n/"), "\xf0\x9f\x98\x80\"\\");
}

struct Attack {
  const char* name;
  std::string bytes;
  const char* message;
};

std::string tensor_header(std::string_view fields) { return str("{\"t\":{", fields, "}}"); }
std::string shape_header(std::string_view shape, std::string_view offsets = "[0,4]") {
  return tensor_header(str(R"("dtype":"F32","shape":)", shape, R"(,"data_offsets":)", offsets));
}
std::string names_over_one_range(int count) {
  std::string header = "{";
  for (int i = 0; i < count; ++i) {
    header.append(i ? ",\"" : "\"").append(std::to_string(i)).append(R"(":{"dtype":"U8","shape":[16],"data_offsets":[0,16]})");
  }
  return header + "}";
}

const std::string kGood = R"("dtype":"U8","shape":[1],"data_offsets":[0,1])";

std::vector<Attack> framing_attacks() {
  return {
      {"seven bytes", "\1\0\0\0\0\0\0"s, "file has 7 bytes"},
      {"empty file", "", "file has 0 bytes"},
      {"length 2^64-1", file_of("{}", "", ~std::uint64_t{0}), "header length is 18446744073709551615; at most"},
      {"length above the limit", file_of("{}", "", 100'000'001), "header length is 100000001; at most"},
      {"length 1000 on a small file", file_of("{}", "", 1000), "header length is 1000, file has 10 bytes: truncated"},
      {"length 0", file_of("", ""), "header length is 0; the shortest header is {}"},
      {"length 1", file_of("{"), "header length is 1"},
      {"not UTF-8", file_of("\xff\xff"), "'{' is due"},
      {"not UTF-8 in a name", file_of("{\"\xff\":{}}"), "not UTF-8"},
      {"overlong UTF-8", file_of("{\"\xc0\x80\":{}}"), "not UTF-8"},
      {"surrogate in UTF-8", file_of("{\"\xed\xa0\x80\":{}}"), "not UTF-8"},
      {"opening brace only", file_of("{ "), "ends where a key is due"},
      {"white space only", file_of("    "), "ends where '{' is due"},
      {"NUL padding", file_of("{}\0\0"s), "bytes after the header's closing brace"},
      {"second object", file_of("{}{}"), "bytes after the header's closing brace"},
      {"list", file_of("[]"), "'{' is due"},
      {"deep nesting", file_of("{\"a\":" + std::string(100'000, '{')), "text in double quotes is due"},
      {"bytes appended", file_of(tensor_header(kGood), "xy"), "tensors take 1 bytes, file holds 2: trailing bytes"},
      {"bytes missing", file_of(shape_header("[1]"), "xy"), "tensors take 4 bytes, file holds 2: truncated"},
      {"data without tensors", file_of("{}", "x"), "tensors take 0 bytes, file holds 1: trailing bytes"},
  };
}

std::vector<Attack> schema_attacks() {
  return {
      {"duplicate tensor", file_of("{\"t\":{" + kGood + "},\"t\":{" + kGood + "}}", "x"), "tensor 't' stands twice"},
      {"duplicate tensor by escape", file_of("{\"t\":{" + kGood + "},\"\\u0074\":{" + kGood + "}}", "x"), "tensor 't' stands twice"},
      {"duplicate metadata block", file_of(R"({"__metadata__":{},"__metadata__":{}})"), "'__metadata__' stands twice"},
      {"duplicate metadata key", file_of(R"({"__metadata__":{"a":"1","a":"2"}})"), "metadata 'a' stands twice"},
      {"duplicate field", file_of(tensor_header(kGood + R"(,"dtype":"U8")"), "x"), "field 'dtype' twice"},
      {"metadata as a tensor", file_of("{\"__metadata__\":{" + kGood + "}}", "x"), "metadata 'shape' is not text"},
      {"metadata number", file_of(R"({"__metadata__":{"a":1}})"), "metadata 'a' is not text"},
      {"empty name", file_of("{\"\":{" + kGood + "}}", "x"), "empty name"},
      {"NUL in a name", file_of("{\"a\\u0000\":{" + kGood + "}}", "x"), "NUL"},
      {"raw NUL in a name", file_of("{\"a\0\":{"s + kGood + "}}", "x"), "control character"},
      {"lone surrogate", file_of("{\"\\ud83d\":{" + kGood + "}}", "x"), "lone surrogate"},
      {"lone low surrogate", file_of("{\"\\ude00\":{" + kGood + "}}", "x"), "lone surrogate"},
      {"reversed surrogates", file_of("{\"\\ud83d\\ud83d\":{" + kGood + "}}", "x"), "lone surrogate"},
      {"long name", file_of("{\"" + std::string(5000, 'n') + "\":{" + kGood + "}}", "x"), "longer than 4096 bytes"},
      {"unknown escape", file_of("{\"\\x41\":{" + kGood + "}}", "x"), "unknown escape"},
      {"short escape", file_of("{\"\\u00\":{" + kGood + "}}", "x"), "4 hexadecimal digits"},
      {"missing field", file_of(R"({"t":{"dtype":"U8","shape":[1]}})", "x"), "lacks dtype, shape or data_offsets"},
      {"extra field", file_of(tensor_header(kGood + R"(,"x":1)"), "x"), "unknown field 'x'"},
      {"tensor is a number", file_of(R"({"t":1})"), "'{' is due"},
      {"unknown dtype", file_of(R"({"t":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "xxxx"), "tensor 't' has unknown dtype F31"},
      {"foreign dtype", file_of(R"({"t":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "x"), "tensor 't' has dtype F8_E4M3"},
      {"half a byte", file_of(R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", "x"), "ends inside a byte"},
      {"trailing comma", file_of("{\"t\":{" + kGood + "},}", "x"), "text in double quotes is due"},
      {"missing comma", file_of("{\"t\":{" + kGood + "}\"u\":{}}", "x"), "'}' is due"},
      {"unfinished text", file_of("{\"t"), "ends inside text"},
  };
}

std::vector<Attack> number_attacks() {
  return {
      {"float size", file_of(shape_header("[1.0]"), "xxxx"), "plain non-negative integer is due"},
      {"exponent", file_of(shape_header("[1e0]"), "xxxx"), "plain non-negative integer is due"},
      {"minus zero", file_of(shape_header("[-0]"), "xxxx"), "plain non-negative integer is due"},
      {"negative size", file_of(shape_header("[-1]"), "xxxx"), "plain non-negative integer is due"},
      {"leading zero", file_of(shape_header("[01]"), "xxxx"), "plain non-negative integer is due"},
      {"size as text", file_of(shape_header("[\"1\"]"), "xxxx"), "plain non-negative integer is due"},
      {"size as null", file_of(shape_header("[null]"), "xxxx"), "plain non-negative integer is due"},
      {"shape as a number", file_of(shape_header("1"), "xxxx"), "'[' is due"},
      {"size 2^64-2", file_of(shape_header("[2,18446744073709551614]"), "xxxx"), "above 2^63 - 1"},
      {"size 2^63-1", file_of(shape_header("[2,9223372036854775807]"), "xxxx"), "size overflows"},
      {"overflow hidden by a zero", file_of(shape_header("[9223372036854775807,3,0]", "[0,0]")), "size overflows"},
      {"33 dimensions", file_of(shape_header("[1" + [] {
                                  std::string ones;
                                  for (int i = 0; i < 32; ++i) ones += ",1";
                                  return ones;
                                }() + "]"), "xxxx"), "more than 32 numbers"},
      {"9 dimensions", file_of(shape_header("[1,1,1,1,1,1,1,1,1]"), "xxxx"), "has 9 dimensions; tessera holds at most 8"},
      {"one offset", file_of(shape_header("[1]", "[4]"), "xxxx"), "needs 2 data_offsets"},
      {"three offsets", file_of(shape_header("[1]", "[0,4,4]"), "xxxx"), "more than 2 numbers"},
      {"offsets reversed", file_of(shape_header("[1]", "[4,0]"), "xxxx"), "the first must not exceed the second"},
      {"offsets beyond the end", file_of(shape_header("[1]", "[4,8]"), "xxxx"), "begins at byte 4 of the data, 0 is due"},
      {"offsets of another size", file_of(shape_header("[1]", "[0,3]"), "xxx"), "data_offsets hold 3 bytes, shape and dtype F32 need 4"},
      {"offset 2^63", file_of(shape_header("[1]", "[0,9223372036854775808]"), "xxxx"), "above 2^63 - 1"},
      {"hole", file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})", "xyz"),
       "tensor 'b' begins at byte 2 of the data, 1 is due"},
      {"overlap", file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "xyz"),
       "begins at byte 1 of the data, 2 is due"},
      {"100,000 names over one range", file_of(names_over_one_range(100'000), std::string(16, 'x')), "may neither overlap"},
      {"more names than the limit", file_of(names_over_one_range(1'000'001), std::string(16, 'x')), "more than 1000000 tensors"},
  };
}

TEST(SafetensorsReader, RefusesEveryKnownAttack) {
  std::vector<Attack> attacks = framing_attacks();
  for (const Attack& attack : schema_attacks()) attacks.push_back(attack);
  for (const Attack& attack : number_attacks()) attacks.push_back(attack);
  for (const Attack& attack : attacks) {
    SCOPED_TRACE(attack.name);
    expect_io_error([&] { decode_safetensors(attack.bytes, "w.safetensors"); }, {attack.message, "w.safetensors"});
  }
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
