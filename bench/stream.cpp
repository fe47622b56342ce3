#include "bench/stream.h"

#include "core/cpu/parallel.h"
#include "core/cpu/stream_peak.h"

namespace tessera::bench {
namespace {

std::int64_t elements_of(std::int64_t megabytes) { return (megabytes << 20) / static_cast<std::int64_t>(sizeof(float)); }

using Pass = void (*)(const float*, float*, std::int64_t, int);

Contestant contestant(std::string name, const Tensor& x, const Tensor& y, Pass pass) {
  const auto run = [x, y, pass] { pass(x.data<float>(), y.data<float>(), x.numel(), cpu::parts_for(x.numel())); };
  return {std::move(name), run};
}

}  // namespace

std::vector<Contestant> stream_contestants(std::int64_t megabytes) {
  const Tensor x = Tensor::zeros({elements_of(megabytes)});
  const Tensor y = Tensor::zeros({elements_of(megabytes)});
  return {contestant("scale", x, y, cpu::stream_scale), contestant("scale past the caches", x, y, cpu::stream_scale_past_caches)};
}

double stream_bytes(std::int64_t megabytes) { return 2.0 * static_cast<double>(elements_of(megabytes)) * sizeof(float); }

}  // namespace tessera::bench
