// Times how fast a folder of JPEGs becomes normalised batches of 224x224, against torchvision on Pillow in the same run. Both
// read the same files, which the rival's script writes, and both decode, resize, crop and normalise. Their pixels are compared
// first. On each number of cores that is asked for, PyTorch's DataLoader has 0, 1 and 2 workers. Each of these takes part in
// every round, and the fastest is the rival.
// Exit codes: 0 measured, 1 the comparison is void (pixels differ), 2 torchvision or cores are missing, or bad arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "bench/core_scope.h"
#include "bench/difference.h"
#include "bench/loader_workload.h"
#include "bench/result_lines.h"
#include "bench/rivals/torch_finalists.h"
#include "bench/rivals/torch_rival.h"
#include "bench/turns.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

// Bytes must be equal: a wrong byte is off by at least 0.017 standard deviations. Float rounding is off by about 1e-7.
constexpr double kPixelTolerance = 2e-6;
constexpr std::int64_t kCompared = 128;  // images at most
constexpr Target kTarget{"least", 1.3};

struct Options {
  CommonOptions common{.rounds = 9, .results = ""};
  TorchOptions torch{.script = TESSERA_BENCH_DIR "/loader_bench_torch.py"};
  std::string only = "all";
  std::int64_t images = 256;
  std::int64_t batch = 32;
};

struct TimedCase {
  std::string frame;
  std::int64_t cores;
};

// On one core, then on the number of cores that --threads gives.
std::vector<TimedCase> cases(const Options& options) {
  std::vector<TimedCase> all;
  for (const std::int64_t cores : {std::int64_t{1}, options.common.threads}) {
    if (!all.empty() && all.back().cores == cores) continue;
    for (const char* const frame : {"training", "evaluation"}) {
      if (options.only == "all" || options.only == frame) all.push_back({frame, cores});
    }
  }
  TESSERA_CHECK(!all.empty(), ConfigError, "loader_bench: --only is '", options.only, "'; needs training, evaluation or all");
  TESSERA_CHECK(options.images % options.batch == 0, ConfigError, "loader_bench: --images is ", options.images,
                "; needs whole batches of ", options.batch);
  return all;
}

TorchRival rival_in(const Options& options, const std::filesystem::path& folder, std::int64_t cores) {
  return {{options.torch.python, options.torch.script, folder, static_cast<int>(cores)},
          {.channels_last = false, .avx512 = __builtin_cpu_supports("avx512vl") != 0}};
}

// The largest difference of the two sides' pixels, relative to the largest pixel.
double compared_pixels(TorchRival& rival, const std::filesystem::path& folder, const Options& options) {
  const std::int64_t count = std::min(options.images, kCompared);
  const std::filesystem::path file = folder / "values";
  rival.ask(str("values ", count, ' ', file.string()));
  const std::string bytes = real_vfs().read_file(file);
  real_vfs().remove(file);
  std::vector<float> theirs(bytes.size() / sizeof(float));
  std::memcpy(theirs.data(), bytes.data(), theirs.size() * sizeof(float));
  const LoaderWorkload workload(folder, {.frame = "evaluation", .threads = 0, .batch = options.batch});
  const double difference = difference_of(theirs, workload.values(count)).relative();
  TESSERA_CHECK(difference <= kPixelTolerance, NumericError, "pixels differ from torchvision's by ", difference,
                " of the largest; ", kPixelTolerance, " is allowed");
  return difference;
}

struct Files {
  std::filesystem::path folder;
  std::int64_t bytes;
  double pixel_difference;
};

Value describe_run(const TimedCase& timed, const Files& files, const Options& options) {
  Value row = Value::map();
  row.set("op", timed.frame);
  row.set("cores", timed.cores);
  row.set("images", options.images);
  row.set("file", "JPEG 500x375, quality 90");
  row.set("file_bytes", files.bytes / options.images);
  row.set("shape", "224x224x3");
  row.set("batch", options.batch);
  row.set("rounds", options.common.rounds);
  row.set("pixel_difference", files.pixel_difference);
  row.set("target", kTarget.value);
  return row;
}

double images_per_second(const Value& row, const char* times) {
  return static_cast<double>(row.at("images").as_int()) / row.at(times).at("median").as_double() * 1e3;
}

Value measure_case(const TimedCase& timed, const Files& files, const Options& options) {
  fmt::print("{}, {} {}\n", timed.frame, timed.cores, timed.cores == 1 ? "core" : "cores");
  const CoreScope cores(timed.cores);
  const LoaderWorkload workload(files.folder, {timed.frame, timed.cores, options.batch});
  TorchRival rival = rival_in(options, files.folder, timed.cores);
  std::vector<Value> ways;
  std::vector<std::string> names;
  std::vector<std::function<double()>> sides{[&] { return workload.run(); }};
  for (const int workers : {0, 1, 2}) {
    Value way = Value::map();
    way.set("workers", workers);
    ways.push_back(std::move(way));
    names.push_back(str("torchvision, ", workers, workers == 1 ? " worker" : " workers"));
    const std::string command = str("epoch ", timed.frame, ' ', workers, ' ', options.batch);
    sides.emplace_back([&rival, command] { return rival.ask(command).at("ms").as_double(); });
  }
  for (const auto& side : sides) side();  // files are cached, threads and processes started
  const std::vector<Samples> samples =
      interleave(sides.size(), options.common.rounds, kTurnsAlone, [&](std::size_t side) { return sides[side](); });
  const FinalistTimes times(samples[0], {samples.begin() + 1, samples.end()});

  Value row = describe_run(timed, files, options);
  print_times(times, names);
  set_times(row, times, ways);
  for (const char* const side : {"tessera", "torch"}) {
    row.set(str(side, "_images_per_second"), images_per_second(row, str(side, "_ms").c_str()));
  }
  row.set("torch", rival.environment());
  fmt::print("  images a second: {:.0f}, torchvision's {:.0f}\n", row.at("tessera_images_per_second").as_double(),
             row.at("torch_images_per_second").as_double());
  return row;
}

Files written_files(const std::filesystem::path& folder, const Options& options) {
  TorchRival rival = rival_in(options, folder, 1);
  const std::int64_t bytes = rival.ask(str("write ", options.images)).at("bytes").as_int();
  const double difference = compared_pixels(rival, folder, options);
  fmt::print("{} JPEGs of {} bytes; pixels differ by {:.1e} of the largest\n", options.images, bytes / options.images,
             difference);
  return {folder, bytes, difference};
}

void measure(const Options& options) {
  const std::vector<TimedCase> timed = cases(options);
  for (const TimedCase& each : timed) const CoreScope enough(each.cores);
  const Value surroundings = describe_surroundings(options.common.threads);
  const ScratchFolder folder("tessera_bench");
  const Files files = written_files(folder.path(), options);
  const CommonOptions to =
      destination(options.common, options.only == "all" ? "" : options.only, TESSERA_BENCH_DIR "/results/loader_bench.jsonl");
  std::vector<Value> rows;
  Ratios ratios{"loader"};
  for (const TimedCase& each : timed) ratios.add(rows.emplace_back(measure_case(each, files, options)));
  for (const Value& row : rows) publish(to, surroundings, row);  // all or none: an interrupted run leaves no partial table
  print_verdict(verdict_of(ratios, {&kTarget, 1}));
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("loader_bench", "times a folder of JPEGs becoming batches against torchvision on Pillow");
  add_common(arguments, options.common);
  arguments.text("--only", options.only, "training, evaluation or all; a part without --results is printed only")
      .count("--images", options.images, "files")
      .count("--batch", options.batch, "images of a batch")
      .text("--python", options.torch.python, "interpreter that has torch and torchvision (/usr/bin/python3)");
  return run_benchmark(arguments, words, [&] { or_explain_missing_torch([&] { measure(options); }); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
