// A number that says how good a network is on a whole split: its names in files and tables, and how it is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/config/fields.h"

namespace tessera {

struct Metric {
  enum class Unit {
    fraction,  // of 1; people see per cent, and points where two are compared
    number,
  };

  std::string_view key;  // in a run: "val_" + key and "best_" + key in its files, and where people read it
  std::string_view column;  // of a finished network on the test split: column + "_mean" in tables
  std::string_view heading;  // the same for people
  Unit unit = Unit::number;
  bool more_is_better = true;
  bool pictured = false;  // a run's picture shows it in place of the task's first metric, which decides

  bool better(double value, double than) const { return more_is_better ? value > than : value < than; }
  // Whether a value is worse than another by no more than `drop`.
  bool within(double value, double than, double drop) const {
    return more_is_better ? value >= than - drop : value <= than + drop;
  }
};

std::string text_of(const Metric& metric, double value);  // "93.28 %", "3.142"
// For a column whose heading tells the unit: "93.28" with 2 decimals.
std::string cell_of(const Metric& metric, double value, int decimals);
double in_unit(const Metric& metric, double value);  // 93.28 of 0.9328
std::string heading_of(const Metric& metric);  // with the unit
std::string_view difference_unit_of(const Metric& metric);  // "points", or empty

// A value with the key of its metric.
struct Scored {
  std::string metric;  // its key
  double value = 0;
};

// Adds the value under prefix + the metric's key, whichever task's metric it is.
void add_scored(Fields& f, std::string_view prefix, std::optional<Scored>& scored, const FieldSpec& spec);
// Adds the value, which is of the test split, under the metric's column.
void add_tested(Fields& f, std::optional<Scored>& scored, const FieldSpec& spec);

}  // namespace tessera
