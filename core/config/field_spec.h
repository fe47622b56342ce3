// What a block says about one of its keys beside its type and default.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "core/support/extent.h"  // written in files as one number or as [h, w]

namespace tessera {

class Value;
struct ConfigProblem;

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  // min itself is not legal
  bool open_max = false;
};
inline constexpr Range positive{.min = 0, .open_min = true};
inline constexpr Range non_negative{.min = 0};
inline constexpr Range unit_interval{.min = 0, .max = 1};
constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }

struct FieldSpec {
  std::string_view help = {};
  Range range = {};  // numbers, and each element of a list of numbers
  std::vector<std::string_view> choices = {};  // legal texts; empty = any
  std::string_view example = {};  // legal YAML; `tessera schema` takes true, false or a choice that is not the default by itself
  // Where setting the key shows, if nowhere else. "plan": tessera plan; "bytes": weights and training state; "report": report.md,
  // layers.csv, the table; "files": which files the run folder holds, and decisions.json; "log": train.log, metrics.jsonl;
  // "none: reason": neither in the plan nor in the bytes.
  std::string_view observable = {};
  bool required = false;
  bool clock = false;  // of a report: a reading of a clock, in which two runs that are otherwise equal differ
  bool nullable = false;  // of an optional: an empty one is written as null, and null is read as an empty one
  // Checks a key that is kept as a Value when it is read. Appends what is wrong to `problems`, with `path` in front.
  void (*check)(const Value& value, std::string_view path, std::vector<ConfigProblem>& problems) = nullptr;
};

}  // namespace tessera
