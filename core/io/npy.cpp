#include "core/io/npy.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written and read as they lie in memory");

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kPrefix = kMagic.size() + 2;  // magic and version
constexpr std::uint64_t kMostHeader = 1 << 16;  // three keys; NumPy writes 118 bytes
constexpr std::size_t kAlignment = 64;  // of the elements, required by the format

// Parses the part of Python's notation that a header uses. Throws IoError with the reason alone.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  // The next character that is no white space; '\0' at the end.
  char peek() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool take(char wanted) {
    if (peek() != wanted || wanted == '\0') return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) { TESSERA_CHECK(take(wanted), IoError, "broken header: '", wanted, "' is missing"); }

  std::string text() {
    const char quote = peek();
    TESSERA_CHECK(quote == '\'' || quote == '"', IoError, "broken header: a text in quotes is missing");
    const std::size_t end = rest_.find(quote, 1);
    TESSERA_CHECK(end != std::string_view::npos, IoError, "broken header: a quote is not closed");
    std::string found(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return found;
  }

  bool truth() {
    peek();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    throw IoError("broken header: True or False is missing");
  }

  std::vector<std::int64_t> sizes() {
    std::vector<std::int64_t> list;
    for (expect('('); !take(')');) {
      list.push_back(size());
      if (peek() != ')') expect(',');
    }
    return list;
  }

 private:
  std::int64_t size() {
    peek();
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    TESSERA_CHECK(error == std::errc() && value >= 0, IoError, "broken header: shape has something that is no size");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::string_view rest_;
};

DType dtype_named(const std::string& descr) {
  if (descr == "<f4") return DType::f32;
  if (descr == "|u1") return DType::u8;
  TESSERA_CHECK(!descr.starts_with('>'), IoError, "is big-endian (", descr, "); must be <f4 or |u1: x.astype(\"<f4\")");
  throw IoError(str("holds elements ", descr, "; must be <f4 or |u1: x.astype(\"float32\")"));
}

Shape shape_of(const std::vector<std::int64_t>& sizes) {
  TESSERA_CHECK(std::ssize(sizes) <= Shape::kMaxRank, IoError, "has ", sizes.size(), " dimensions; at most ", Shape::kMaxRank,
                " are read");
  TESSERA_CHECK(can_be_counted(sizes), IoError, "has a shape of more than 2^40 elements");
  return Shape(std::span<const std::int64_t>(sizes));
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string take_bytes(std::ifstream& file, std::uint64_t count, const char* what) {
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  TESSERA_CHECK(static_cast<std::uint64_t>(file.gcount()) == count, IoError, "ends within ", what);
  return bytes;
}

// Reads everything before the elements; returns the dict.
std::string read_header(std::ifstream& file) {
  const std::string prefix = take_bytes(file, kPrefix, "its first 8 bytes");
  TESSERA_CHECK(prefix.starts_with(kMagic), IoError, "is no NumPy array: it does not begin with \\x93NUMPY");
  const int major = static_cast<unsigned char>(prefix[kMagic.size()]), minor = static_cast<unsigned char>(prefix.back());
  TESSERA_CHECK(major >= 1 && major <= 3 && minor == 0, IoError, "is a NumPy array of version ", major, '.', minor,
                "; 1.0 to 3.0 are read");
  const std::uint64_t length = little_endian(take_bytes(file, major == 1 ? 2 : 4, "the length of its header"));
  TESSERA_CHECK(length <= kMostHeader, IoError, "has a header of ", length, " bytes; at most ", kMostHeader, " are read");
  return take_bytes(file, length, "its header");
}

}  // namespace

NpyFile::NpyFile(const std::string& path) : path_(path) {
  try {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    TESSERA_CHECK(std::filesystem::exists(status), IoError, "no such file");
    TESSERA_CHECK(std::filesystem::is_regular_file(status), IoError, "is no regular file");
    const std::uint64_t bytes = std::filesystem::file_size(path, error);
    file_.open(path, std::ios::binary);
    TESSERA_CHECK(!error && file_.is_open(), IoError, "cannot be opened");
    parse(read_header(file_));
    data_ = static_cast<std::uint64_t>(file_.tellg());
    check_size(bytes);
  } catch (const IoError& error) {
    throw IoError(str(path_, ": ", error.what()));
  }
}

void NpyFile::parse(const std::string& header) {
  HeaderParser parser(header);
  std::vector<std::string> keys;
  std::string descr;
  std::vector<std::int64_t> sizes;
  bool by_columns = false;
  for (parser.expect('{'); !parser.take('}');) {
    const std::string& key = keys.emplace_back(parser.text());
    parser.expect(':');
    if (key == "descr") {
      TESSERA_CHECK(parser.peek() != '[', IoError, "holds records; must be one array of float32 or uint8");
      descr = parser.text();
    } else if (key == "fortran_order") {
      by_columns = parser.truth();
    } else {
      TESSERA_CHECK(key == "shape", IoError, "broken header: unknown key '", key, "'");
      sizes = parser.sizes();
    }
    if (parser.peek() != '}') parser.expect(',');
  }
  std::ranges::sort(keys);
  TESSERA_CHECK(keys == (std::vector<std::string>{"descr", "fortran_order", "shape"}) && parser.peek() == '\0', IoError,
                "broken header: must be descr, fortran_order and shape, each once, and nothing behind them");
  dtype_ = dtype_named(descr);
  TESSERA_CHECK(!by_columns, IoError, "lies column by column (fortran_order); must lie row by row: numpy.ascontiguousarray(x)");
  shape_ = shape_of(sizes);
}

void NpyFile::check_size(std::uint64_t bytes) const {
  const std::uint64_t needed = data_ + static_cast<std::uint64_t>(shape_.numel()) * size_of(dtype_);
  TESSERA_CHECK(bytes == needed, IoError, "has ", bytes, " bytes; an array of ", dtype_, ' ', shape_, " has ", needed);
}

void NpyFile::read(std::int64_t first, std::int64_t count, void* out) {
  const auto size = static_cast<std::int64_t>(size_of(dtype_));
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(data_) + first * size);
  file_.read(static_cast<char*>(out), count * size);
  TESSERA_CHECK(file_.gcount() == count * size, IoError, path_, ": cannot be read at element ", first);
}

std::string encode_npy(std::span<const float> values, const Shape& shape) {
  TESSERA_CHECK(static_cast<std::int64_t>(values.size()) == shape.numel(), InternalError, "encode_npy: ", values.size(),
                " values of shape ", shape);
  std::string sizes;
  for (const std::int64_t size : shape) sizes += str(sizes.empty() ? "" : " ", size, ',');
  if (shape.rank() > 1) sizes.pop_back();  // Python writes (2, 3), but (2,)
  std::string header = str("{'descr': '<f4', 'fortran_order': False, 'shape': (", sizes, "), }");
  const std::size_t before = kPrefix + 2;
  header.append(kAlignment - 1 - (before + header.size()) % kAlignment, ' ');
  header += '\n';
  std::string bytes =
      str(kMagic, '\1', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8), header);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return bytes;
}

}  // namespace tessera
