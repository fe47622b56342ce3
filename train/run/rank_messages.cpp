#include "train/run/rank_messages.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "core/support/hash.h"
#include "core/support/host.h"
#include "train/run/decisions_file.h"
#include "train/run/model_state.h"

namespace tessera {
namespace {

constexpr const char* kOrigin = "rank 0";

// The host and the processors that the process may use, such as {"host": "a", "processors": [0, 1]}.
Value processors_of_process() {
  Value processors = Value::list();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::int64_t i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(static_cast<std::size_t>(i), &set)) processors.as_list().emplace_back(i);
    }
  }
  Value process = Value::map();
  process.set("host", host_name());
  process.set("processors", processors);
  return process;
}

// A short text for a tensor: type, shape and a hash of the bytes.
std::string in_short(const Tensor& tensor) {
  const Tensor whole = tensor.to(Device::cpu()).contiguous();
  return str(describe(tensor), " #", xxh3_128({static_cast<const char*>(whole.raw()), whole.bytes()}));
}

// The first key whose value differs, or nothing. A key that only one of the two has counts as a difference.
std::optional<std::string> first_difference(const Value& reference, const Value& other) {
  for (const Value::Entry& entry : reference.as_map()) {
    const Value* const value = other.find(entry.key);
    if (value == nullptr || !(*value == entry.value)) return entry.key;
  }
  for (const Value::Entry& entry : other.as_map()) {
    if (reference.find(entry.key) == nullptr) return entry.key;
  }
  return std::nullopt;
}

std::string text_at(const Value& map, const std::string& key) {
  const Value* const value = map.find(key);
  return value == nullptr ? "nothing" : to_json(*value);
}

}  // namespace

void tell(Communicator& ranks, RankMessageKind kind, std::string_view text) {
  std::string bytes(1, static_cast<char>(kind));
  bytes.append(text);
  ranks.broadcast(bytes);
}

RankMessage hear(Communicator& ranks) {
  std::string bytes;
  ranks.broadcast(bytes);
  TESSERA_CHECK(!bytes.empty(), InternalError, "ranks: rank 0 sent an empty message");
  const auto kind = static_cast<RankMessageKind>(bytes.front());
  bytes.erase(0, 1);  // in place: a checkpoint is large
  return {kind, std::move(bytes)};
}

std::string hear(Communicator& ranks, RankMessageKind expected) {
  RankMessage message = hear(ranks);
  TESSERA_CHECK(message.kind == expected, InternalError, "ranks: rank 0 sent a message '", static_cast<char>(message.kind),
                "', '", static_cast<char>(expected), "' was expected");
  return std::move(message.text);
}

std::string encode_checkpoint(const Value& manifest, const std::map<std::string, State>& parts) {
  SafetensorsFile tensors;
  Value metas = Value::map();
  for (const auto& [part, state] : parts) {
    metas.set(part, state.meta);
    for (const auto& [name, tensor] : state.tensors) tensors.tensors.emplace(part + '/' + name, tensor.to(Device::cpu()));
  }
  Value head = Value::map();
  head.set("manifest", manifest);
  head.set("parts", metas);
  const std::string text = to_json(head);
  const std::uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += text;
  encode_safetensors(tensors, [&](std::string_view piece) { bytes.append(piece); });
  return bytes;
}

std::string encode_checkpoint(Value manifest, const std::map<std::string, State>& parts, const DecisionMap& decisions) {
  manifest.set("decisions", to_value(decisions));
  return encode_checkpoint(manifest, parts);
}

Checkpoint decode_checkpoint(std::string_view text) {
  std::uint64_t length = 0;
  TESSERA_CHECK(text.size() >= sizeof length, InternalError, "ranks: rank 0 sent no checkpoint");
  std::memcpy(&length, text.data(), sizeof length);
  const Value head = parse_json(text.substr(sizeof length, length), kOrigin);
  Checkpoint checkpoint;
  checkpoint.folder = kOrigin;
  checkpoint.manifest = head.at("manifest");
  for (const Value::Entry& part : head.at("parts").as_map()) checkpoint.parts[part.key].meta = part.value;
  SafetensorsFile tensors = decode_safetensors(text.substr(sizeof length + length), kOrigin);
  for (auto& [name, tensor] : tensors.tensors) {
    const std::size_t slash = name.find('/');  // names of parts have no slash
    checkpoint.parts.at(name.substr(0, slash)).tensors.emplace(name.substr(slash + 1), std::move(tensor));
  }
  return checkpoint;
}

std::string encode_decisions(const DecisionMap& decisions) { return to_json(to_value(decisions)); }

DecisionMap decode_decisions(std::string_view text) { return decisions_from(parse_json(text, kOrigin)); }

std::int64_t fair_threads(Communicator& ranks) {
  std::map<std::string, std::set<std::int64_t>> processors;
  std::map<std::string, std::int64_t> processes;
  for (const std::string& text : ranks.all_gather(to_json(processors_of_process()))) {
    const Value process = parse_json(text, "ranks");
    const std::string& host = process.at("host").as_string();
    for (const Value& processor : process.at("processors").as_list()) processors[host].insert(processor.as_int());
    ++processes[host];
  }
  std::int64_t fewest = CPU_SETSIZE;
  for (const auto& [host, count] : processes)
    fewest = std::min(fewest, static_cast<std::int64_t>(processors[host].size()) / count);
  return std::max<std::int64_t>(1, fewest);
}

std::vector<int> first_ranks(Communicator& ranks, std::string_view text) {
  const std::vector<std::string> all = ranks.all_gather(text);
  std::vector<int> firsts;
  for (auto each = all.begin(); each != all.end(); ++each) {
    if (std::find(all.begin(), each, *each) == each) firsts.push_back(static_cast<int>(each - all.begin()));
  }
  return firsts;
}

void compare_keys(Communicator& ranks, const Value& mine, std::string_view what) {
  const std::string text = to_json(mine);
  const std::vector<std::string> hashes = ranks.all_gather(str(xxh3_128(text)));
  if (std::ranges::all_of(hashes, [&](const std::string& hash) { return hash == hashes.front(); })) return;
  const std::vector<std::string> all = ranks.all_gather(text);
  const Value reference = parse_json(all.front(), kOrigin);
  for (std::size_t r = 1; r < all.size(); ++r) {
    const Value other = parse_json(all[r], str("rank ", r));
    const std::optional<std::string> key = first_difference(reference, other);
    TESSERA_CHECK(!key, Error, "ranks differ in ", what, ": ", *key, " is ", text_at(other, *key), " on rank ", r, " and ",
                  text_at(reference, *key), " on rank 0");
  }
}

void compare_models(Communicator& ranks, Module& model) {
  Value tensors = Value::map();
  for (const auto& [path, tensor] : model_state(model).tensors) tensors.set(path, in_short(tensor));
  compare_keys(ranks, tensors, "the network");
}

void compare_parts(Communicator& ranks, const std::map<std::string, State>& parts) {
  Value all = Value::map();
  for (const auto& [part, state] : parts) {
    all.set(part, state.meta);
    for (const auto& [name, tensor] : state.tensors) all.set(str(part, '/', name), in_short(tensor));
  }
  compare_keys(ranks, all, "the state of training");
}

}  // namespace tessera
