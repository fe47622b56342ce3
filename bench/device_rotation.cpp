#include "bench/device_rotation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "core/device/device_work.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kBeyondCaches = 128.0 * (1 << 20);  // the largest cache of today, a B200's, has 126 MB; an H200's has 50 MB
constexpr double kMostSets = 2048;
constexpr double kReplaySeconds = 1e-3;
constexpr double kMostCalls = 4096;  // nodes of a graph
constexpr std::int64_t kSweepRounds = 5;
constexpr double kQuickShare = 1.5;
constexpr int kEagerCalls = 3;
constexpr double kEagerShare = 3;
constexpr double kLaunchSeconds = 30e-6;  // how much longer the launches of one engine may take than another's
constexpr std::int64_t kComparedElements = 1 << 20;  // from each end

struct Refusals {
  Value::List rows;

  void add(const std::string& name, const std::string& why) {
    Value& row = rows.emplace_back(Value::map());
    row.set("name", name);
    row.set("why", why);
  }
};

// The compared elements of set 0: all of them, or equally many images (or rows) from the start and from the end.
std::vector<float> sample_of(const RotatedSide& side) {
  side.output.fill(std::numeric_limits<double>::quiet_NaN());
  side.run(0);
  const Tensor result = side.result();
  const std::int64_t rows = result.dim(0);
  const std::int64_t taken =
      std::clamp(rows * kComparedElements / std::max<std::int64_t>(result.numel(), 1), std::int64_t{1}, rows);
  std::vector<float> values;
  for (const std::int64_t begin : {std::int64_t{0}, rows - taken}) {
    const Tensor part = result.slice(0, begin, begin + taken).contiguous().to(Device::cpu()).to(DType::f32);
    values.insert(values.end(), part.data<float>(), part.data<float>() + part.numel());
    if (taken == rows) break;
  }
  return values;
}

void check_close(const std::vector<float>& expected, const RotatedSide& side, double tolerance) {
  const std::vector<float> actual = sample_of(side);
  TESSERA_CHECK(actual.size() == expected.size(), InternalError, side.name, ": result of another size");
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double distance = std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
    difference = std::isnan(distance) ? INFINITY : std::max(difference, distance);
  }
  TESSERA_CHECK(difference <= tolerance * largest, NumericError, side.name, " is off by ", difference, ", the largest value is ",
                largest, "; must agree to ", tolerance, " of it");
}

// The contestants whose second call takes at most kQuickShare times the fastest one's. Engines differ by factors of a hundred,
// and the slow ones would take most of the time of a sweep.
std::vector<Contestant> near_the_fastest(std::vector<Contestant> graphs, Device device) {
  std::vector<double> seconds;
  for (const Contestant& graph : graphs) {
    seconds_on(device, graph.run);
    seconds.push_back(seconds_on(device, graph.run));
  }
  std::vector<Contestant> near;
  for (const std::size_t index : lowest(seconds, kQuickShare, graphs.size())) near.emplace_back(std::move(graphs[index]));
  return near;
}

// The least time of a few calls on set 0, including their launches.
double eager_seconds(const RotatedSide& side, Device device) {
  double least = std::numeric_limits<double>::infinity();
  for (int call = 0; call < kEagerCalls; ++call) least = std::min(least, seconds_on(device, [&] { side.run(0); }));
  return least;
}

// Calls `use`, which tries a rival. If it throws, `refusals` gets the reason and the result is false.
template <class Use>
bool usable(const RotatedSide& rival, Refusals& refusals, const Use& use) {
  try {
    use();
    return true;
  } catch (const NumericError& error) {
    refusals.add(rival.name, error.what());
  } catch (const DeviceError& error) {
    refusals.add(rival.name, error.what());
  } catch (const OutOfMemoryError& error) {
    refusals.add(rival.name, error.what());
  }
  return false;
}

// What all sides must compute: the result of our first way. Throws NumericError if one of our other ways differs.
std::vector<float> expected_of(const RotatedCase& rotated) {
  std::vector<float> expected = sample_of(rotated.ours.front());
  for (const RotatedSide& way : std::span(rotated.ours).subspan(1)) check_close(expected, way, rotated.tolerance);
  return expected;
}

struct Admitted {
  std::vector<Contestant> graphs;
  std::size_t timed = 0;  // number of sides that agree
};

// Graphs of the sides that agree with ours, can be recorded, and are not far slower than the fastest in a single call. Slow sides
// are not recorded because recording runs each of the sets.
Admitted admitted(std::span<const RotatedSide> sides, const std::vector<float>& expected, const RotatedCase& rotated,
                  Device device, std::size_t calls, Refusals& refusals) {
  std::vector<double> seconds(sides.size(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    usable(sides[i], refusals, [&] {
      check_close(expected, sides[i], rotated.tolerance);
      seconds[i] = eager_seconds(sides[i], device);
    });
  }
  Admitted found;
  const double limit = kEagerShare * *std::ranges::min_element(seconds) + kLaunchSeconds;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (!std::isfinite(seconds[i])) continue;
    const auto record = [&] {
      if (seconds[i] <= limit) found.graphs.emplace_back(recorded(sides[i], device, rotated.sets, calls));
    };
    if (usable(sides[i], refusals, record)) ++found.timed;
  }
  return found;
}

// The sides that ours are compared with: the best of a group, and the rows of its sweep for the result line.
struct Field {
  std::vector<Contestant> finalists;
  Value sweep = Value::list();
  std::size_t timed = 0;
};

// Empty if `sides` is. Throws InternalError if no usable side is left.
Field field_of(std::span<const RotatedSide> sides, const std::vector<float>& expected, const RotatedCase& rotated, Device device,
               std::size_t calls, Refusals& refusals) {
  if (sides.empty()) return {};
  Admitted found = admitted(sides, expected, rotated, device, calls, refusals);
  TESSERA_CHECK(!found.graphs.empty(), InternalError, rotated.op, ' ', rotated.shape, ", ", rotated.pass, ", ", rotated.precision,
                ": no rival agrees with ours; refused: ", to_json(Value::list(refusals.rows)));
  Sweep swept =
      sweep(near_the_fastest(std::move(found.graphs), device), {.rounds = kSweepRounds, .seconds = 0, .device = device});
  return {std::move(swept.finalists), std::move(swept.rows), found.timed};
}

Samples per_call(const Samples& samples, std::size_t calls) {
  Samples each = samples;
  for (std::vector<double>* times : {&each.rounds, &each.alone}) {
    for (double& ms : *times) ms /= static_cast<double>(calls);
  }
  return each;
}

// Sets these keys to the fastest of the sides begin <= side < end.
void set_best(Value& row, const char* name, const char* ratio, std::span<const Contestant> sides,
              std::span<const Samples> samples, std::size_t begin, std::size_t end) {
  const std::size_t best = begin + fastest(samples.subspan(begin, end - begin));
  row.set(name, timed(sides[best].name, samples[best]));
  row.set(ratio, ratio_value(samples[best], samples[0]));
}

Value::List rows_of_ways(const RotatedCase& rotated, std::span<const Samples> samples) {
  Value::List rows;
  for (std::size_t way = 1; way < rotated.ours.size(); ++way) {
    Value& row = rows.emplace_back(timed(rotated.ours[way].name, samples[way]));
    row.set("ratio", ratio_value(samples[way], samples[0]));
  }
  return rows;
}

Value describe(const RotatedCase& rotated, std::int64_t rounds, std::size_t calls) {
  Value row = Value::map();
  row.set("op", rotated.op);
  row.set("shape", rotated.shape);
  row.set("pass", rotated.pass);
  row.set("precision", rotated.precision);
  row.set("rounds", rounds);
  row.set("sets", static_cast<std::int64_t>(rotated.sets));
  row.set("calls", static_cast<std::int64_t>(calls));
  return row;
}

}  // namespace

std::size_t sets_beyond_caches(double bytes) {
  return static_cast<std::size_t>(std::clamp(std::ceil(kBeyondCaches / bytes), 1.0, kMostSets));
}

std::vector<Tensor> random_sets(const Shape& shape, std::string_view name, DType dtype, Device device, std::size_t sets) {
  std::vector<Tensor> tensors;
  for (std::size_t set = 0; set < sets; ++set) tensors.push_back(random_tensor(shape, str(name, set), dtype, device));
  return tensors;
}

std::vector<Tensor> empty_sets(const Shape& shape, DType dtype, Device device, std::size_t sets) {
  std::vector<Tensor> tensors;
  for (std::size_t set = 0; set < sets; ++set) tensors.push_back(Tensor::empty(shape, dtype, device));
  return tensors;
}

Contestant recorded(const RotatedSide& side, Device device, std::size_t sets, std::size_t calls) {
  for (std::size_t set = 0; set < sets; ++set) side.run(set);
  const std::shared_ptr<DeviceGraph> graph = record_graph(device, [&] {
    for (std::size_t call = 0; call < calls; ++call) side.run(call % sets);
  });
  return {side.name, [graph] { graph->replay(); }};
}

std::size_t calls_per_replay(const RotatedSide& side, Device device, std::size_t sets) {
  const Contestant all = recorded(side, device, sets, sets);
  all.run();
  const double seconds = seconds_on(device, all.run);
  const double walks =
      std::clamp(std::ceil(kReplaySeconds / seconds), 1.0, std::max(1.0, kMostCalls / static_cast<double>(sets)));
  return static_cast<std::size_t>(walks) * sets;
}

Value measure_rotated(const RotatedCase& rotated, Device device, std::int64_t rounds) {
  TESSERA_CHECK(!rotated.rivals.empty() || !rotated.dense.empty(), InternalError, rotated.op, ' ', rotated.shape, ", ",
                rotated.pass, ", ", rotated.precision, ": there is nothing to compare ours with");
  const std::size_t calls = calls_per_replay(rotated.ours.front(), device, rotated.sets);
  Refusals refusals;
  for (const Refused& rival : rotated.unsupported) refusals.add(rival.name, rival.why);
  const std::vector<float> expected = expected_of(rotated);
  const Field rivals = field_of(rotated.rivals, expected, rotated, device, calls, refusals);
  const Field dense = field_of(rotated.dense, expected, rotated, device, calls, refusals);

  std::vector<Contestant> sides;
  for (const RotatedSide& way : rotated.ours) sides.emplace_back(recorded(way, device, rotated.sets, calls));
  for (const Field* field : {&rivals, &dense}) sides.insert(sides.end(), field->finalists.begin(), field->finalists.end());
  std::vector<Samples> samples;
  for (const Samples& side : time_in_turns(sides, {.rounds = rounds, .seconds = kReplaySeconds, .device = device})) {
    samples.emplace_back(per_call(side, calls));
  }

  Value row = describe(rotated, rounds, calls);
  row.set("tessera_ms", to_value(samples[0]));
  const std::size_t first_rival = rotated.ours.size(), first_dense = first_rival + rivals.finalists.size();
  if (!rivals.finalists.empty()) set_best(row, "rival", "ratio", sides, samples, first_rival, first_dense);
  if (!dense.finalists.empty()) set_best(row, "dense", "dense_ratio", sides, samples, first_dense, sides.size());
  row.set("ways", Value::list(rows_of_ways(rotated, samples)));
  row.set("rivals_timed", static_cast<std::int64_t>(rivals.timed));
  row.set("rival_sweep", rivals.sweep);
  row.set("dense_timed", static_cast<std::int64_t>(dense.timed));
  row.set("dense_sweep", dense.sweep);
  row.set("rivals_refused", Value::list(std::move(refusals.rows)));
  row.set("gflops", rotated.flops / samples[0].median() * 1e-6);
  return row;
}

}  // namespace tessera::bench
