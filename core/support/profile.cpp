#include "core/support/profile.h"

#include <chrono>
#include <utility>

#include "core/support/error.h"

namespace tessera {

constinit thread_local Profile* Profile::active_ = nullptr;

std::string_view name_of(ProfilePart part) {
  switch (part) {
    case ProfilePart::data: return "data";
    case ProfilePart::forward: return "forward";
    case ProfilePart::backward: return "backward";
    case ProfilePart::exchange: return "exchange";
    case ProfilePart::update: return "update";
    case ProfilePart::hooks: return "hooks";
    case ProfilePart::metrics: return "metrics";
    case ProfilePart::rest: return "rest";
    case ProfilePart::profiler: return "profiler";
  }
  throw InternalError("profile: no such part");
}

std::int64_t Profile::steady_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Profile::tick() {
  const std::int64_t now = clock_();
  (kernels_ > 0 ? pending_.kernel_ns : pending_.engine_ns) += now - last_ns_;
  last_ns_ = now;
}

void Profile::enter_kernel() {
  if (kernels_ == 0) tick();
  ++kernels_;
}

void Profile::leave_kernel() {
  if (kernels_ == 1) tick();
  --kernels_;
}

void Profile::book(Sum& sum) {
  ++sum.calls;
  sum.kernel_ns += pending_.kernel_ns;
  sum.engine_ns += pending_.engine_ns;
  sum.work.flops += pending_.work.flops;
  sum.work.bytes += pending_.work.bytes;
  pending_ = {};
}

void Profile::charge(ProfilePart part, std::string_view what, ModulePath layer, ProfiledWork work) {
  tick();
  pending_.work = work;
  book(sums_[{part, layer != nullptr ? std::string_view(*layer) : std::string_view(), std::string(what)}]);
  const std::int64_t now = clock_();
  own_ns_ += now - last_ns_;
  last_ns_ = now;
}

void Profile::begin() { began_ns_ = last_ns_ = clock_(); }

void Profile::end() {
  tick();
  book(rest_);
  wall_ns_ += last_ns_ - began_ns_;
}

std::vector<ProfileRow> Profile::rows() const {
  std::vector<ProfileRow> rows;
  const auto add = [&](ProfilePart part, std::string_view what, std::string_view layer, const Sum& sum) {
    rows.push_back({part, std::string(what), std::string(layer), sum.calls, sum.kernel_ns, sum.engine_ns, sum.work});
  };
  for (const auto& [key, sum] : sums_) add(std::get<0>(key), std::get<2>(key), std::get<1>(key), sum);
  if (rest_.calls > 0) add(ProfilePart::rest, "end", "", rest_);
  if (own_ns_ > 0) add(ProfilePart::profiler, "book-keeping", "", {.calls = rest_.calls, .engine_ns = own_ns_});
  return rows;
}

ProfileScope::ProfileScope(Profile& profile) : profile_(profile), previous_(std::exchange(Profile::active_, &profile)) {
  profile_.begin();
}

ProfileScope::~ProfileScope() {
  profile_.end();
  Profile::active_ = previous_;
}

}  // namespace tessera
