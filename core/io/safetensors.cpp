#include "core/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <vector>

#include "core/io/safetensors_header.h"
#include "core/support/error.h"
#include "core/support/hash.h"

namespace tessera {
namespace {

using safetensors::Entry;
using safetensors::Header;

static_assert(std::endian::native == std::endian::little,
              "safetensors stores little-endian elements; they are copied as they are");

constexpr std::size_t kLengthBytes = 8;

std::uint64_t read_length(std::string_view bytes, std::string_view origin) {
  TESSERA_CHECK(bytes.size() >= kLengthBytes, IoError, "safetensors: ", origin, ": file has ", bytes.size(),
                " bytes; the header length alone takes ", kLengthBytes);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  TESSERA_CHECK(length <= safetensors::kMaxHeaderBytes, IoError, "safetensors: ", origin, ": header length is ", length,
                "; at most ", safetensors::kMaxHeaderBytes);
  TESSERA_CHECK(length >= 2, IoError, "safetensors: ", origin, ": header length is ", length, "; the shortest header is {}");
  TESSERA_CHECK(length <= bytes.size() - kLengthBytes, IoError, "safetensors: ", origin, ": header length is ", length,
                ", file has ", bytes.size(), " bytes: truncated");
  return length;
}

// Bytes that shape and dtype require. A size of 0 counts as 1 in the overflow check: no order of sizes then hides an overflow.
std::int64_t checked_bytes(const Entry& entry, std::string_view origin) {
  const int bits = safetensors::bits_of(entry.dtype);
  std::int64_t total = std::max(bits, 1);
  bool empty = false;
  for (const std::int64_t size : entry.shape) {
    empty = empty || size == 0;
    TESSERA_CHECK(!__builtin_mul_overflow(total, std::max<std::int64_t>(size, 1), &total), IoError, "safetensors: ", origin,
                  ": tensor '", entry.name, "': size overflows 2^63 bits");
  }
  TESSERA_CHECK(total % 8 == 0 || empty, IoError, "safetensors: ", origin, ": tensor '", entry.name, "' ends inside a byte");
  return empty ? 0 : total / 8;
}

// Checks that every tensor has the bytes its shape needs and that together they cover the data exactly once.
void check_layout(const std::vector<Entry>& entries, std::size_t data_bytes, std::string_view origin) {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) {
    sorted.push_back(&entry);
    TESSERA_CHECK(entry.begin <= entry.end, IoError, "safetensors: ", origin, ": tensor '", entry.name, "': data_offsets are [",
                  entry.begin, ", ", entry.end, "]; the first must not exceed the second");
    if (safetensors::bits_of(entry.dtype) == 0) safetensors::parse_dtype(entry, origin);  // throws
    const std::int64_t needed = checked_bytes(entry, origin);
    TESSERA_CHECK(entry.end - entry.begin == needed, IoError, "safetensors: ", origin, ": tensor '", entry.name,
                  "': data_offsets hold ", entry.end - entry.begin, " bytes, shape and dtype ", entry.dtype, " need ", needed);
  }
  std::ranges::sort(sorted, {}, [](const Entry* entry) { return std::tie(entry->begin, entry->end); });
  std::int64_t expected = 0;
  for (const Entry* entry : sorted) {
    TESSERA_CHECK(entry->begin == expected, IoError, "safetensors: ", origin, ": tensor '", entry->name, "' begins at byte ",
                  entry->begin, " of the data, ", expected, " is due; tensors may neither overlap nor leave holes");
    expected = entry->end;
  }
  TESSERA_CHECK(static_cast<std::uint64_t>(expected) == data_bytes, IoError, "safetensors: ", origin, ": tensors take ", expected,
                " bytes, file holds ", data_bytes,
                static_cast<std::uint64_t>(expected) > data_bytes ? ": truncated" : ": trailing bytes");
}

Tensor read_tensor(const Entry& entry, std::string_view data, std::string_view origin) {
  TESSERA_CHECK(entry.shape.size() <= static_cast<std::size_t>(Shape::kMaxRank), IoError, "safetensors: ", origin, ": tensor '",
                entry.name, "' has ", entry.shape.size(), " dimensions; tessera holds at most ", Shape::kMaxRank);
  Tensor tensor = Tensor::empty(Shape(std::span(entry.shape)), safetensors::parse_dtype(entry, origin));
  if (tensor.bytes() > 0) std::memcpy(tensor.raw(), data.data() + entry.begin, tensor.bytes());
  return tensor;
}

// Position in the format's list of dtypes, which is its order of alignment.
int alignment_order(DType dtype) {
  switch (dtype) {
    case DType::u8: return 0;
    case DType::f16: return 1;
    case DType::bf16: return 2;
    case DType::i32: return 3;
    case DType::f32: return 4;
    case DType::f64: return 5;
    case DType::i64: return 6;
  }
  throw InternalError("safetensors: unknown dtype");
}

using Item = std::pair<const std::string, Tensor>;

std::vector<const Item*> in_file_order(const SafetensorsFile& file) {
  std::vector<const Item*> items;
  for (const Item& item : file.tensors) {
    TESSERA_CHECK(item.second.defined(), InternalError, "safetensors: tensor '", item.first, "' is undefined");
    items.push_back(&item);
  }
  std::ranges::stable_sort(items, std::greater(), [](const Item* item) { return alignment_order(item->second.dtype()); });
  return items;
}

std::string encode_header(const SafetensorsFile& file, const std::vector<const Item*>& items) {
  Header header{.metadata = file.metadata, .entries = {}};
  header.metadata.emplace("format", "pt");  // other readers refuse files without it
  std::int64_t offset = 0;
  for (const Item* item : items) {
    const auto& [name, tensor] = *item;
    const auto bytes = static_cast<std::int64_t>(tensor.bytes());
    const std::vector<std::int64_t> sizes(tensor.shape().begin(), tensor.shape().end());
    header.entries.push_back({name, std::string(safetensors::spelling_of(tensor.dtype())), sizes, offset, offset + bytes});
    offset += bytes;
  }
  std::string json = safetensors::write_header(header);
  safetensors::parse_header(json, "writing");  // names come from callers: writes nothing that the reader would refuse
  json.append((kLengthBytes - json.size() % kLengthBytes) % kLengthBytes, ' ');
  TESSERA_CHECK(json.size() <= safetensors::kMaxHeaderBytes, IoError, "safetensors: writing: header has ", json.size(),
                " bytes; at most ", safetensors::kMaxHeaderBytes);
  return json;
}

// Hashes the bytes that the file would have without the key, so that the order of a reader or writer does not matter.
std::string checksum(SafetensorsFile file) {
  file.metadata.erase(std::string(kChecksumKey));
  Xxh3Stream hash;
  encode_safetensors(file, [&](std::string_view piece) { hash.update(piece); });
  return hash.hex();
}

void check_checksum(const SafetensorsFile& file, std::string_view origin) {
  const auto stored = file.metadata.find(std::string(kChecksumKey));
  if (stored == file.metadata.end()) return;
  const std::string found = checksum(file);
  TESSERA_CHECK(found == stored->second, IoError, "safetensors: ", origin, ": checksum is ", found, ", metadata ", kChecksumKey,
                " says ", stored->second, ": damaged, or changed by a program that kept the old checksum");
}

}  // namespace

void encode_safetensors(const SafetensorsFile& file, const std::function<void(std::string_view)>& sink) {
  const std::vector<const Item*> items = in_file_order(file);
  const std::string json = encode_header(file, items);
  const std::uint64_t length = json.size();
  sink({reinterpret_cast<const char*>(&length), kLengthBytes});
  sink(json);
  for (const Item* item : items) {
    const Tensor tensor = item->second.to(Device::cpu()).contiguous();
    if (tensor.bytes() > 0) sink({static_cast<const char*>(tensor.raw()), tensor.bytes()});
  }
}

std::string encode_safetensors(const SafetensorsFile& file) {
  std::string bytes;
  encode_safetensors(file, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

void add_checksum(SafetensorsFile& file) { file.metadata[std::string(kChecksumKey)] = checksum(file); }

SafetensorsFile decode_safetensors(std::string_view bytes, std::string_view origin) {
  const std::uint64_t length = read_length(bytes, origin);
  Header header = safetensors::parse_header(bytes.substr(kLengthBytes, length), origin);
  const std::string_view data = bytes.substr(kLengthBytes + length);
  check_layout(header.entries, data.size(), origin);
  SafetensorsFile file{.tensors = {}, .metadata = std::move(header.metadata)};
  for (const Entry& entry : header.entries) file.tensors.emplace(entry.name, read_tensor(entry, data, origin));
  check_checksum(file, origin);
  return file;
}

}  // namespace tessera
