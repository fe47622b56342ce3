#include "include/tessera.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/rng.h"
#include "layers/models/gpt.h"
#include "layers/models/model.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_limit.h"
#include "tests/fuzz/targets.h"
#include "train/run/network_file.h"

namespace tessera::fuzz {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;  // of a buffer
constexpr char kUntouched = 0x5a;

struct Free {
  void operator()(tessera_network* network) const { tessera_free(network); }
};
using Network = std::unique_ptr<tessera_network, Free>;

// Takes bytes from the front of the input, and zeros after its end.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  bool rarely() { return byte() % 16 == 15; }

 private:
  std::string_view rest_;
};

void check_status(tessera_status status) {
  require(status >= TESSERA_OK && status <= TESSERA_FAILED, "a status that the header does not have");
  require(status != TESSERA_FAILED, "a fault of the library");
  require(status == TESSERA_OK || *tessera_last_error() != '\0', "an error without words");
}

std::size_t size_of(tessera_dtype dtype) { return dtype == TESSERA_FLOAT32 ? 4 : dtype == TESSERA_INT64 ? 8 : 1; }

// A buffer as a program may pass it: nearly right and with enough memory for its shape, or null.
struct Handed {
  std::array<std::int64_t, TESSERA_MOST_AXES> shape{};
  std::vector<std::int64_t> memory = {};  // aligned for every dtype
  tessera_tensor tensor{};

  Handed(Choices& choices, std::initializer_list<std::int64_t> usual, tessera_dtype dtype) {
    static constexpr std::array<const char*, 6> kNames{nullptr, "image", "tokens", "key_mask", "scores", ""};
    static constexpr std::array<std::int64_t, 6> kOdd{0, -1, 7, std::int64_t{1} << 40, INT64_MAX, INT64_MIN};
    std::ranges::copy(usual, shape.begin());
    tensor.name = kNames[choices.byte() % kNames.size()];
    tensor.dtype = choices.rarely() ? choices.byte() - 1 : dtype;
    tensor.rank = choices.rarely() ? choices.byte() - 2 : static_cast<std::int32_t>(usual.size());
    tensor.shape = choices.rarely() ? nullptr : shape.data();
    shape[0] = choices.byte() % 5;
    if (choices.rarely()) shape[choices.byte() % shape.size()] = kOdd[choices.byte() % kOdd.size()];
    const bool fits = bytes() <= kMostBytes;
    memory.assign(fits ? bytes() / 8 + 1 : 0, 0);
    for (std::int64_t& word : memory) word = choices.byte() % 64;
    tensor.data = !fits || choices.rarely() ? nullptr : memory.data();
  }
  Handed(const Handed&) = delete;
  Handed& operator=(const Handed&) = delete;

  std::size_t bytes() const {
    if (tensor.shape == nullptr || tensor.rank < 0 || tensor.rank > TESSERA_MOST_AXES) return 0;
    std::size_t count = size_of(tensor.dtype);
    for (std::int32_t i = 0; i < tensor.rank; ++i) {
      if (shape[static_cast<std::size_t>(i)] <= 0) return 0;
      count *= std::min(static_cast<std::size_t>(shape[static_cast<std::size_t>(i)]), kMostBytes);
      if (count > kMostBytes) return count;
    }
    return count;
  }
};

void run_once(tessera_network* network, const Handed& first, const Handed& second, Handed& output, Choices& choices) {
  const std::array<tessera_tensor, 2> inputs{first.tensor, second.tensor};
  const std::int32_t input_count = choices.rarely() ? choices.byte() - 2 : 1 + choices.byte() % 2;
  std::array<std::int64_t, TESSERA_MOST_AXES> shape{};
  std::int32_t rank = -1;
  const std::int32_t counted = std::min(input_count, 2);
  const tessera_status known = tessera_output_shape(network, inputs.data(), counted, shape.data(), &rank);
  check_status(known);
  require((rank == -1) == (known != TESSERA_OK), "a shape is written where there is an error");
  std::fill_n(reinterpret_cast<char*>(output.memory.data()), output.memory.size() * 8, kUntouched);
  const tessera_status status = tessera_run(network, inputs.data(), counted, &output.tensor, 1);
  check_status(status);
  if (status != TESSERA_OK) {
    const auto* const begin = reinterpret_cast<const char*>(output.memory.data());
    require(std::all_of(begin, begin + output.memory.size() * 8, [](char byte) { return byte == kUntouched; }),
            "an output is written where there is an error");
    return;
  }
  require(known == TESSERA_OK, "a run of inputs whose output has no shape");
  require(output.tensor.rank == rank && std::equal(shape.begin(), shape.begin() + rank, output.shape.begin()),
          "an output of another shape than was told");
}

Network loaded(const std::string& bytes) {
  static MemoryFile file;
  file.write(bytes);
  const tessera_options options{sizeof(options), 1, nullptr, nullptr};
  tessera_network* network = nullptr;
  check_status(tessera_load(file.path().c_str(), &options, &network));
  return Network(network);
}

std::string image_network() {
  const ModelConfig config{
      .form = models::LayerList{.layers = parse_json(R"([{"conv2d": {"out": 2, "kernel": 3, "padding": 1}}, "batch_norm", "relu",
                                   "flatten", {"linear": {"out": 3}}])",
                                                     "network")}};
  const auto model = build_model(config, {1, 4, 4, 1});
  initialize(*model, 1);
  NetworkUse use{.task = "classification"};
  use.data.set("preprocessing", parse_json(R"({"mean": [0.5], "std": [0.5]})", "network"));
  return encode_network(*model, {1, 4, 4, 1}, use);
}

std::string text_network() {
  models::Gpt config{.layers = 1, .width = 8, .heads = 2, .vocabulary = 11};
  config.length = 6;
  const auto model = config.build({1, 4});
  initialize(*model, 1);
  return encode_network(*model, {1, 4});
}

void make_calls(Choices choices) {
  static const Network images = loaded(image_network()), text = loaded(text_network());
  const bool of_text = choices.byte() % 2 == 1;
  for (int i = 0; i < 4 && !choices.empty(); ++i) {
    if (of_text) {
      const Handed tokens(choices, {2, 4}, TESSERA_INT64), mask(choices, {2, 4}, TESSERA_UINT8);
      Handed scores(choices, {2, 4, 11}, TESSERA_FLOAT32);
      run_once(text.get(), tokens, mask, scores, choices);
    } else {
      const bool pixels = choices.byte() % 2 == 1;
      const Handed image(choices, {2, 4, 4, 1}, pixels ? TESSERA_UINT8 : TESSERA_FLOAT32), none(choices, {2, 4}, TESSERA_UINT8);
      Handed scores(choices, {2, 3}, TESSERA_FLOAT32);
      run_once(images.get(), image, none, scores, choices);
    }
  }
}

}  // namespace

void c_interface(std::string_view bytes) {
  const MemoryLimit limit;
  make_calls(Choices(bytes));
  const Network network = loaded(std::string(bytes));
  if (network == nullptr) return;
  const char* json = nullptr;
  check_status(tessera_describe(network.get(), &json));
  require(parse_json(json, "description").find("inputs") != nullptr, "a description without inputs");
}

std::vector<std::string> c_interface_seeds() {
  std::string right(400, '\0'), right_text = right;  // no name, nothing odd, batches of one
  for (std::size_t i = 1; i < right.size(); ++i) right[i] = right_text[i] = static_cast<char>(i % 3);
  right_text[0] = 1;
  return {image_network(), text_network(), right, right_text};
}

}  // namespace tessera::fuzz
