#include "train/tasks/metric.h"

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

template <class Key>
void add_under(Fields& f, std::optional<Scored>& scored, const FieldSpec& spec, const Key& key_of) {
  for (const Task* task : builtin_tasks()) {
    const Metric& metric = task->metrics().front();
    const bool own = scored && scored->metric == metric.key;
    std::optional<double> value = own ? std::optional(scored->value) : std::nullopt;
    f.add(key_of(metric), value, spec);
    if (value) scored = Scored{std::string(metric.key), *value};
  }
}

}  // namespace

double in_unit(const Metric& metric, double value) { return metric.unit == Metric::Unit::fraction ? 100.0 * value : value; }

std::string heading_of(const Metric& metric) { return str(metric.heading, metric.unit == Metric::Unit::fraction ? " %" : ""); }

std::string_view difference_unit_of(const Metric& metric) { return metric.unit == Metric::Unit::fraction ? "points" : ""; }

std::string text_of(const Metric& metric, double value) {
  return metric.unit == Metric::Unit::fraction ? percent(value) : formatted("%.6g", value);
}

std::string cell_of(const Metric& metric, double value, int decimals) {
  return formatted(str("%.", decimals, 'f').c_str(), in_unit(metric, value));
}

void add_scored(Fields& f, std::string_view prefix, std::optional<Scored>& scored, const FieldSpec& spec) {
  add_under(f, scored, spec, [&](const Metric& metric) { return str(prefix, metric.key); });
}

void add_tested(Fields& f, std::optional<Scored>& scored, const FieldSpec& spec) {
  add_under(f, scored, spec, [](const Metric& metric) { return std::string(metric.column); });
}

}  // namespace tessera
