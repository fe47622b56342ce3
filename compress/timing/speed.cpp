#include "compress/timing/speed.h"

#include <sstream>

#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

constexpr std::string_view kFaster = "faster";
constexpr std::string_view kNotFaster = "not-faster";

struct Figure {
  std::string_view name;
  double Speed::*value = nullptr;
  double MedianInterval::*of_ratio = nullptr;

  double& of(Speed& speed) const { return value != nullptr ? speed.*value : speed.ratio.*of_ratio; }
};

constexpr Figure kFigures[]{{.name = "dense_ms", .value = &Speed::dense_ms},
                            {.name = "compressed_ms", .value = &Speed::compressed_ms},
                            {.name = "ratio", .of_ratio = &MedianInterval::median},
                            {.name = "low", .of_ratio = &MedianInterval::low},
                            {.name = "high", .of_ratio = &MedianInterval::high}};

}  // namespace

void Speed::fields(Fields& f) {
  f.add("dense_ms", dense_ms, {.help = "milliseconds per batch", .clock = true});
  f.add("compressed_ms", compressed_ms, {.help = "milliseconds per batch", .clock = true});
  f.add("speedup", ratio.median, {.help = "dense time over compressed time, median", .clock = true});
  f.add("speedup_low", ratio.low, {.help = "of its 95 % confidence interval", .clock = true});
  f.add("speedup_high", ratio.high, {.help = "of its 95 % confidence interval", .clock = true});
  f.add("faster", faster, {.help = "whether the interval of the batches that decide lies above 1.02"});
}

void PhaseSpeed::fields(Fields& f) {
  f.add("phase", phase, {.help = "inference, decode or training"});
  f.add("timed_at", timed_at, {.help = "batch, phase and threads"});
  f.add("speed", speed, {.help = "of the network after the pass, over the one before"});
}

std::string to_text(const Speed& speed) {
  Speed copy = speed;
  std::string text(speed.faster ? kFaster : kNotFaster);
  for (const Figure& figure : kFigures) text += str(' ', figure.name, ' ', formatted("%.4g", figure.of(copy)));
  return text;
}

Speed speed_from(std::string_view text) {
  std::istringstream words{std::string(text)};
  Speed speed;
  std::string word;
  words >> word;
  bool good = word == kFaster || word == kNotFaster;
  speed.faster = word == kFaster;
  for (const Figure& figure : kFigures) good = good && words >> word >> figure.of(speed) && word == figure.name;
  TESSERA_CHECK(good && !(words >> word), ConfigError, "'", text, "' is not a timing; expected '", to_text(Speed{}), "'");
  return speed;
}

std::string verdict_of(std::string_view text) { return std::string(text.substr(0, text.find(' '))); }

std::string describe(const MedianInterval& ratio) {
  return str(formatted("%.2f", ratio.median), "x (", formatted("%.2f", ratio.low), '-', formatted("%.2f", ratio.high), ')');
}

}  // namespace tessera
