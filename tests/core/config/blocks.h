// Blocks that use every kind of key, shared by the tests of reading, writing and describing.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config/read.h"

namespace tessera::test {

struct Sgd {
  static constexpr const char* kName = "sgd";
  double lr = 0.1;
  double momentum = 0;
  bool nesterov = false;
  void fields(Fields& f) {
    f.add("lr", lr, {.help = "learning rate", .range = positive});
    f.add("momentum", momentum, {.range = {.min = 0, .max = 1, .open_max = true}});
    f.add("nesterov", nesterov, {});
    f.require(!nesterov || momentum > 0, "nesterov", "needs momentum > 0");
  }
  friend bool operator==(const Sgd&, const Sgd&) = default;
};

struct Adamw {
  static constexpr const char* kName = "adamw";
  double lr = 1e-3;
  double beta1 = 0.9;
  void fields(Fields& f) {
    f.add("lr", lr, {.range = positive});
    f.add("beta1", beta1, {.range = {.min = 0, .max = 1, .open_max = true}});
  }
  friend bool operator==(const Adamw&, const Adamw&) = default;
};

struct Optimizer {
  std::variant<Sgd, Adamw> algorithm;
  std::optional<double> clip;
  void fields(Fields& f) {
    f.choose("name", algorithm, {});
    f.add("clip", clip, {.range = positive});
  }
  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

struct Admm {
  std::string layers = "*";
  std::vector<std::int64_t> ranks = {8};
  double rho = 1e-3;
  void fields(Fields& f) {
    f.add("layers", layers, {});
    f.add("ranks", ranks, {.range = at_least(1)});
    f.add("rho", rho, {.range = positive});
  }
  friend bool operator==(const Admm&, const Admm&) = default;
};

struct Stage {
  std::string name;
  Duration train = Duration::epochs(1);
  std::optional<Admm> admm;
  void fields(Fields& f) {
    f.add("name", name, {.required = true});
    f.add("train", train, {});
    f.add("admm", admm, {});
  }
  friend bool operator==(const Stage&, const Stage&) = default;
};

struct Experiment {
  std::int64_t seed = 1;
  std::string precision = "f32";
  Extent crop;
  std::vector<double> mean;
  std::vector<std::string> devices = {"cpu"};
  Optimizer optimizer;
  std::vector<Stage> stages = {{"default", Duration::epochs(3), std::nullopt}};
  Value extra;
  void fields(Fields& f) {
    f.add("seed", seed, {.range = non_negative});
    f.add("precision", precision, {.choices = {"f32", "tf32", "bf16"}});
    f.add("crop", crop, {.range = at_least(1)});
    f.add("mean", mean, {.range = unit_interval});
    f.add("devices", devices, {.choices = {"cpu", "cuda"}});
    f.add("optimizer", optimizer, {});
    f.add("stages", stages, {});
    f.add("extra", extra, {});
  }
  friend bool operator==(const Experiment&, const Experiment&) = default;
};

// A block whose JSON has every key whatever its members hold, and a key that no member keeps.
struct Measured {
  std::int64_t samples = 0;
  std::int64_t right = 0;
  std::optional<double> loss = {};
  std::optional<Sgd> optimizer = {};
  std::optional<std::vector<Admm>> passes = {};
  std::optional<std::string> note = {};  // left out when it is empty

  std::optional<double> accuracy() const {
    if (samples == 0) return {};
    return static_cast<double>(right) / static_cast<double>(samples);
  }
  void fields(Fields& f) {
    f.add("samples", samples, {.range = non_negative});
    f.add("right", right, {});
    f.add_computed("accuracy", accuracy(), {.help = "right over samples", .range = unit_interval, .nullable = true});
    f.add("loss", loss, {.range = non_negative, .nullable = true});
    f.add("optimizer", optimizer, {.nullable = true});
    f.add("passes", passes, {.nullable = true});
    f.add("note", note, {});
  }
  friend bool operator==(const Measured&, const Measured&) = default;
};

inline Value json(std::string_view text) { return parse_json(text, "x.json"); }

}  // namespace tessera::test
