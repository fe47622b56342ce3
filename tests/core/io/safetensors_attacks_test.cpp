// Forged files. A lenient reader accepts each of them, crashes on it or uses up all memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "tests/core/io/expect_error.h"
#include "tests/core/io/safetensors_bytes.h"

namespace tessera {
namespace {

using namespace std::string_literals;

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
      {"length above our own limit", file_of("{}", "", (64u << 20) + 1), "header length is 67108865; at most 67108864"},
      {"length one past the end", file_of("{}", "", 3), "header length is 3, file has 10 bytes: truncated"},
      {"length 1000 on a small file", file_of("{}", "", 1000), "header length is 1000, file has 10 bytes: truncated"},
      {"length 0", file_of("", ""), "header length is 0; the shortest header is {}"},
      {"length 1", file_of("{"), "header length is 1"},
      {"not UTF-8", file_of("\xff\xff"), "'{' is due"},
      {"not UTF-8 in a name", file_of("{\"\xff\":{}}"), "not UTF-8"},
      {"overlong UTF-8", file_of("{\"\xc0\x80\":{}}"), "not UTF-8"},
      {"surrogate in UTF-8", file_of("{\"\xed\xa0\x80\":{}}"), "not UTF-8"},
      {"UTF-8 above U+10FFFF", file_of("{\"\xf4\x90\x80\x80\":{}}"), "not UTF-8"},
      {"UTF-8 cut off by the quote", file_of("{\"\xe2\x82\":{}}"), "not UTF-8"},
      {"UTF-8 cut off by the end", file_of("{\"\xe2"), "not UTF-8"},
      {"byte order mark", file_of("\xef\xbb\xbf{}"), "'{' is due"},
      {"text instead of an object", file_of("\"{}\""), "'{' is due"},
      {"comment", file_of("{}//"), "bytes after the header's closing brace"},
      {"no-break space", file_of("{}\xc2\xa0"), "bytes after the header's closing brace"},
      {"opening brace only", file_of("{ "), "ends where a key is due"},
      {"white space only", file_of("    "), "ends where '{' is due"},
      {"NUL padding", file_of("{}\0\0"s), "bytes after the header's closing brace"},
      {"second object", file_of("{}{}"), "bytes after the header's closing brace"},
      {"list", file_of("[]"), "'{' is due"},
      {"deep nesting", file_of("{\"a\":" + std::string(100'000, '{')), "text in double quotes is due"},
      {"deep nesting in metadata", file_of("{\"__metadata__\":{\"a\":" + std::string(100'000, '[')), "metadata 'a' is not text"},
      {"bytes appended", file_of(tensor_header(kGood), "xy"), "tensors take 1 bytes, file holds 2: trailing bytes"},
      {"bytes missing", file_of(shape_header("[1]"), "xy"), "tensors take 4 bytes, file holds 2: truncated"},
      {"data without tensors", file_of("{}", "x"), "tensors take 0 bytes, file holds 1: trailing bytes"},
  };
}

std::vector<Attack> schema_attacks() {
  return {
      {"duplicate tensor", file_of("{\"t\":{" + kGood + "},\"t\":{" + kGood + "}}", "x"), "tensor 't' stands twice"},
      {"duplicate tensor by escape", file_of("{\"t\":{" + kGood + "},\"\\u0074\":{" + kGood + "}}", "x"),
       "tensor 't' stands twice"},
      {"duplicate metadata block", file_of(R"({"__metadata__":{},"__metadata__":{}})"), "'__metadata__' stands twice"},
      {"duplicate metadata key", file_of(R"({"__metadata__":{"a":"1","a":"2"}})"), "metadata 'a' stands twice"},
      {"duplicate field", file_of(tensor_header(kGood + R"(,"dtype":"U8")"), "x"), "tensor 't': field 'dtype' stands twice"},
      {"metadata as a tensor", file_of("{\"__metadata__\":{" + kGood + "}}", "x"), "metadata 'shape' is not text"},
      {"metadata is text", file_of(R"({"__metadata__":"a"})"), "'{' is due"},
      {"metadata null", file_of(R"({"__metadata__":null})"), "'{' is due"},
      {"metadata list", file_of(R"({"__metadata__":{"a":["1"]}})"), "metadata 'a' is not text"},
      {"escaped metadata block twice", file_of(R"({"__metadata__":{},"__\u006detadata__":{}})"), "'__metadata__' stands twice"},
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
      {"missing field", file_of(R"({"t":{"dtype":"U8","shape":[1]}})", "x"), "tensor 't': lacks dtype, shape or data_offsets"},
      {"extra field", file_of(tensor_header(kGood + R"(,"x":1)"), "x"), "tensor 't': unknown field 'x'"},
      {"tensor is a number", file_of(R"({"t":1})"), "'{' is due"},
      {"tensor is null", file_of(R"({"t":null})"), "tensor 't': '{' is due"},
      {"dtype is a number", file_of(R"({"t":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", "xxxx"),
       "tensor 't': text in double quotes is due"},
      {"dtype in lower case", file_of(R"({"t":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", "xxxx"),
       "tensor 't' has unknown dtype f32"},
      {"dtype empty", file_of(R"({"t":{"dtype":"","shape":[1],"data_offsets":[0,4]}})", "xxxx"), "tensor 't' has unknown dtype"},
      {"key without quotes", file_of("{t:{" + kGood + "}}", "x"), "text in double quotes is due"},
      {"colon missing", file_of("{\"t\"{" + kGood + "}}", "x"), "':' is due"},
      {"unknown dtype", file_of(R"({"t":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "xxxx"),
       "tensor 't' has unknown dtype F31"},
      {"foreign dtype", file_of(R"({"t":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "x"),
       "tensor 't' has dtype F8_E4M3"},
      {"half a byte", file_of(R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", "x"), "tensor 't' ends inside a byte"},
      {"trailing comma", file_of("{\"t\":{" + kGood + "},}", "x"), "text in double quotes is due"},
      {"missing comma", file_of("{\"t\":{" + kGood + "}\"u\":{}}", "x"), "'}' is due"},
      {"unfinished text", file_of("{\"t"), "ends inside text"},
  };
}

std::vector<Attack> number_attacks() {
  return {
      {"float size", file_of(shape_header("[1.0]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"exponent", file_of(shape_header("[1e0]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"minus zero", file_of(shape_header("[-0]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"negative size", file_of(shape_header("[-1]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"leading zero", file_of(shape_header("[01]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"size as text", file_of(shape_header("[\"1\"]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"size as null", file_of(shape_header("[null]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"shape as a number", file_of(shape_header("1"), "xxxx"), "'[' is due"},
      {"size 2^64-2", file_of(shape_header("[2,18446744073709551614]"), "xxxx"), "tensor 't': a number above 2^63 - 1"},
      {"size 2^63-1", file_of(shape_header("[2,9223372036854775807]"), "xxxx"), "tensor 't': size overflows"},
      {"size 2^63-1 of one byte", file_of(R"({"t":{"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,4]}})", "xxxx"),
       "tensor 't': size overflows"},
      {"overflow only in bits", file_of(shape_header("[288230376151711744]"), "xxxx"), "tensor 't': size overflows"},
      {"overflow back to the right size", file_of(shape_header("[4294967296,4294967297]"), "xxxx"), "tensor 't': size overflows"},
      {"nested shape", file_of(shape_header("[[1]]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"plus sign", file_of(shape_header("[+1]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"NaN size", file_of(shape_header("[NaN]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"shape cut off", file_of(R"({"t":{"shape":[1)"), "tensor 't': ends where ']' is due"},
      {"trailing comma in a shape", file_of(shape_header("[1,]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"overflow hidden by a zero", file_of(shape_header("[9223372036854775807,3,0]", "[0,0]")), "tensor 't': size overflows"},
      {"33 dimensions",
       file_of(shape_header("[1" +
                            [] {
                              std::string ones;
                              for (int i = 0; i < 32; ++i) ones += ",1";
                              return ones;
                            }() +
                            "]"),
               "xxxx"),
       "tensor 't': lists more than 32 numbers"},
      {"9 dimensions", file_of(shape_header("[1,1,1,1,1,1,1,1,1]"), "xxxx"),
       "tensor 't' has 9 dimensions; tessera holds at most 8"},
      {"one offset", file_of(shape_header("[1]", "[4]"), "xxxx"), "tensor 't': needs 2 data_offsets, has 1"},
      {"three offsets", file_of(shape_header("[1]", "[0,4,4]"), "xxxx"), "tensor 't': lists more than 2 numbers"},
      {"offsets reversed", file_of(shape_header("[1]", "[4,0]"), "xxxx"),
       "tensor 't': data_offsets are [4, 0]; the first must not exceed the second"},
      {"offsets beyond the end", file_of(shape_header("[1]", "[4,8]"), "xxxx"),
       "tensor 't' begins at byte 4 of the data, 0 is due"},
      {"offsets of another size", file_of(shape_header("[1]", "[0,3]"), "xxx"),
       "tensor 't': data_offsets hold 3 bytes, shape and dtype F32 need 4"},
      {"negative offset", file_of(shape_header("[1]", "[-4,0]"), "xxxx"), "tensor 't': a plain non-negative integer is due"},
      {"empty tensor in a hole", file_of(shape_header("[0]", "[4,4]"), "xxxx"),
       "tensor 't' begins at byte 4 of the data, 0 is due"},
      {"scalar without bytes", file_of(shape_header("[]", "[0,0]")), "tensor 't': data_offsets hold 0 bytes"},
      {"offset 2^63", file_of(shape_header("[1]", "[0,9223372036854775808]"), "xxxx"), "tensor 't': a number above 2^63 - 1"},
      {"hole",
       file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
               "xyz"),
       "tensor 'b' begins at byte 2 of the data, 1 is due"},
      {"overlap",
       file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
               "xyz"),
       "tensor 'b' begins at byte 1 of the data, 2 is due"},
      {"empty tensor inside another",
       file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
               "xy"),
       "tensor 'b' begins at byte 1 of the data, 2 is due"},
      {"two names for the same bytes",
       file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
               "xy"),
       "begins at byte 0 of the data, 2 is due"},
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

}  // namespace
}  // namespace tessera
