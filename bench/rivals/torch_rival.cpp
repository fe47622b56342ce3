#include "bench/rivals/torch_rival.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "bench/result_lines.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr int kAttempts = 12;
// The pause between two attempts. A temporary slowdown of a shared machine ends, a crippled rival stays slow.
constexpr std::chrono::seconds kPause(5);
constexpr double kLeastMatmulShare = 0.6;  // of the multiply-add peak; below it torch runs on a reference BLAS or one thread

std::vector<std::string> arguments(const TorchProgram& program, const TorchSettings& settings) {
  if (!std::filesystem::exists(program.python)) throw TorchMissing(str("torch: there is no interpreter ", program.python));
  std::vector<std::string> words{program.python, program.script, program.inputs.string(), "--threads",
                                 str(threads_of(program, settings))};
  if (settings.channels_last) words.emplace_back("--channels-last");
  if (settings.compiled) words.emplace_back("--compiled");
  if (settings.cuda) words.insert(words.end(), {"--device", "cuda"});
  if (settings.graphs) words.emplace_back("--graphs");
  words.insert(words.end(), program.options.begin(), program.options.end());
  return words;
}

// scripts/gpu_check sets library paths for our programs, with their libstdc++. torch must load what it would load without us.
std::vector<std::string> cuda_environment(const TorchProgram& program) {
  std::vector<std::string> lines{str("TORCHINDUCTOR_CACHE_DIR=", (program.inputs / "inductor").string())};
  if (const char* const path = std::getenv("TESSERA_TORCH_LIBRARY_PATH")) {
    lines.push_back(*path == '\0' ? "LD_LIBRARY_PATH" : str("LD_LIBRARY_PATH=", path));
  }
  return lines;
}

// Whether MKL has to be told to use all that the processor has (mkl_any_cpu.cpp).
bool frees_mkl() { return !__builtin_cpu_is("intel"); }

std::vector<std::string> environment_for(const TorchProgram& program, const TorchSettings& settings) {
  if (settings.cuda) return cuda_environment(program);
  // The capabilities have separate caches: torch 2.15 reuses code compiled for the other one and then corrupts its heap.
  const std::string capability = settings.avx512 ? "avx512" : "avx2";
  // OpenBLAS's OpenMP build shares torch's thread pool. Its pthread build would compete with torch for the cores.
  std::vector<std::string> lines{
      str("OMP_NUM_THREADS=", threads_of(program, settings)), settings.passive ? "OMP_WAIT_POLICY=passive" : "OMP_WAIT_POLICY",
      "LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu/openblas-openmp", str("ATEN_CPU_CAPABILITY=", capability),
      str("TORCHINDUCTOR_CACHE_DIR=", (program.inputs / "inductor" / capability).string())};
  if (settings.tuned_malloc) {
    lines.insert(lines.end(),
                 {"MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=8589934592", "MALLOC_TOP_PAD_=268435456"});
  }
  if (frees_mkl()) {
    const char* const others = std::getenv("LD_PRELOAD");
    lines.push_back(str("LD_PRELOAD=" TESSERA_MKL_ANY_CPU, others != nullptr ? str(':', others) : ""));
  }
  return lines;
}

}  // namespace

std::string to_string(const TorchSettings& settings) {
  if (settings.cuda) {
    return str("cuda, ", settings.channels_last ? "channels_last" : "contiguous", settings.compiled ? ", compiled" : "",
               settings.graphs ? ", graphs" : "");
  }
  return str(settings.channels_last ? "channels_last" : "contiguous", settings.avx512 ? ", avx512" : ", avx2",
             settings.tuned_malloc ? ", tuned malloc" : ", default malloc", settings.compiled ? ", compiled" : "",
             settings.passive ? "" : ", default wait", settings.one_thread ? ", one thread" : "");
}

Value to_value(const TorchSettings& settings) {
  Value value = Value::map();
  value.set("channels_last", settings.channels_last);
  if (settings.cuda) {
    value.set("compiled", settings.compiled);
    value.set("graphs", settings.graphs);
    return value;
  }
  value.set("aten_avx512", settings.avx512);
  value.set("tuned_malloc", settings.tuned_malloc);
  value.set("compiled", settings.compiled);
  value.set("wait_policy", settings.passive ? "passive" : "default");
  value.set("one_thread", settings.one_thread);
  value.set("mkl_any_cpu", frees_mkl());
  return value;
}

std::vector<TorchSettings> all_torch_settings() {
  std::vector<TorchSettings> all;
  for (const bool channels_last : {true, false}) {
    for (const bool avx512 : {false, true}) {
      for (const bool tuned_malloc : {false, true}) {
        if (avx512 && !__builtin_cpu_supports("avx512vl")) continue;
        all.push_back({.channels_last = channels_last, .avx512 = avx512, .tuned_malloc = tuned_malloc});
      }
    }
  }
  return all;
}

std::vector<TorchSettings> all_cuda_settings() {
  std::vector<TorchSettings> all;
  for (const bool graphs : {false, true}) {
    all.push_back({.channels_last = true, .cuda = true, .graphs = graphs});
    all.push_back({.channels_last = false, .cuda = true, .graphs = graphs});
  }
  all.push_back({.channels_last = true, .compiled = true, .cuda = true, .graphs = true});
  return all;
}

int threads_of(const TorchProgram& program, const TorchSettings& settings) { return settings.one_thread ? 1 : program.threads; }

std::vector<TorchSettings> thread_variants(const TorchProgram& program, const TorchSettings& settings, bool try_one_thread) {
  if (program.threads == 1 || settings.cuda) return {};
  std::vector<TorchSettings> variants{settings};
  variants.back().passive = false;
  if (try_one_thread) {
    variants.push_back(settings);
    variants.back().one_thread = true;
  }
  return variants;
}

TorchRival::TorchRival(const TorchProgram& program, const TorchSettings& settings)
    : settings_(settings),
      threads_(threads_of(program, settings)),
      child_(arguments(program, settings), environment_for(program, settings)),
      environment_(parse_json(child_.read_line(), "torch")) {
  const Value* missing = environment_.find("missing");
  if (missing != nullptr) throw TorchMissing(str("torch: ", program.python, " cannot import it: ", missing->as_string()));
}

Value TorchRival::ask(const std::string& line) { return child_.ask(line, "torch"); }

std::int64_t TorchRival::memory_kib() {
  const Value answer = ask("memory");
  return answer.at("peak_kib").as_int() - answer.at("start_kib").as_int();
}

Steps TorchRival::run(std::int64_t count) {
  const Value answer = ask(str("step ", count));
  return {numbers(answer.at("ms")), numbers(answer.at("loss"))};
}

void pause_between_attempts() { std::this_thread::sleep_for(kPause); }

FairProduct fair_product(const ProductOfRival& rival, const MeasurePeak& measure_peak, const std::function<void()>& pause) {
  FairProduct best{0, 1, rival.threads};
  double before = rival.gflops();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) pause();
    const double peak = measure_peak(rival.threads);
    const double after = rival.gflops();
    const FairProduct product{std::max(before, after), peak, rival.threads};
    before = after;
    fmt::print("  {:<68} matmul 1024^3: {:.0f} GFLOP/s, multiply-add peak {:.0f}\n", rival.way, product.gflops, product.peak);
    if (product.gflops >= kLeastMatmulShare * product.peak) return product;
    if (product.gflops / product.peak > best.gflops / best.peak) best = product;
  }
  throw InternalError(str(rival.rival, "'s matmul (", rival.way, ") reaches ", best.gflops, " of ", best.peak, " GFLOP/s; needs ",
                          kLeastMatmulShare, " of the peak: not a fair rival (reference BLAS, one thread, or a busy machine)"));
}

FairProduct fair_product(TorchRival& rival, const MeasurePeak& measure_peak, const std::function<void()>& pause) {
  const auto gflops = [&] { return rival.ask("matmul").at("gflops").as_double(); };
  return fair_product({"torch", to_string(rival.settings()), rival.threads(), gflops}, measure_peak, pause);
}

void set_product(Value& row, const FairProduct& product, const std::string& rival) {
  row.set(str(rival, "_matmul_gflops"), product.gflops);
  row.set("fma_peak_gflops", product.peak);
  row.set("fma_peak_threads", product.threads);
}

void or_explain_missing_torch(const std::function<void()>& measure) {
  try {
    measure();
  } catch (const TorchMissing& error) {
    throw ConfigError(str(error.what(), "; install Debian's python3-torch or name another interpreter with --python"));
  }
}

}  // namespace tessera::bench
