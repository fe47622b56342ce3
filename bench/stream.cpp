#include "bench/stream.h"

#include <algorithm>

#include "bench/rivals/cuda_copy_rival.h"
#include "core/cpu/channel_blocks.h"
#include "core/cpu/parallel.h"
#include "core/cpu/stream_peak.h"
#include "core/device/backends.h"

namespace tessera::bench {
namespace {

// Has enough independent sums to hide the latency of an addition.
void read(const float* from, std::int64_t count) {
  using Block = cpu::ChannelBlock<float, 8, 8>;
  Block sums = Block::filled(0);
  for (std::int64_t i = 0; i + Block::kChannels <= count; i += Block::kChannels) sums = sums + Block::load(from + i);
  asm volatile("" : : "r"(&sums) : "memory");  // makes the compiler believe that the sums are used
}

}  // namespace

std::vector<StreamSide> stream_sides(std::int64_t megabytes, Device device, bool in_place) {
  const std::int64_t count = (megabytes << 20) / static_cast<std::int64_t>(sizeof(float));
  const Tensor x = Tensor::zeros({count}, DType::f32, device);
  const Tensor y = Tensor::zeros({count}, DType::f32, device);
#if TESSERA_HAS_CUDA
  if (device.is_cuda()) return {{{"copy", [=] { cuda_copy(x, y); }}, 2 * static_cast<double>(x.bytes())}};
#endif
  std::vector<StreamSide> sides;
  for (const cpu::StreamPass& pass : cpu::stream_passes()) {
    if (pass.in_place && !in_place) continue;
    const auto run = [=] { pass.run(x.data<float>(), y.data<float>(), count, cpu::parts_for(count)); };
    sides.push_back({{pass.name, run}, pass.bytes(count)});
  }
  return sides;
}

StreamSide read_side(std::int64_t bytes) {
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
  const Tensor x = Tensor::full({count}, 1.0);  // not zeros: zero pages may all share one physical page
  const auto run = [=] {
    cpu::parallel_for(count, cpu::kGrain,
                      [&](std::int64_t begin, std::int64_t end) { read(x.data<float>() + begin, end - begin); });
  };
  return {{"read", run}, static_cast<double>(x.bytes())};
}

std::vector<double> rates(double bytes, const Samples& ms) {
  std::vector<double> rate;
  for (const double each : ms.rounds) rate.push_back(bytes / each * 1e-6);
  return rate;
}

Streaming fastest_stream(std::span<const StreamSide> sides, std::span<const Samples> ms) {
  std::vector<Streaming> all;
  for (std::size_t i = 0; i < sides.size(); ++i) all.push_back({sides[i].contestant.name, ms[i], rates(sides[i].bytes, ms[i])});
  return *std::ranges::max_element(all, {}, [](const Streaming& one) { return quantile(one.gbytes_per_second, 0.5); });
}

}  // namespace tessera::bench
