// Where the time of a piece of work goes. Between two readings of the clock it passes inside a kernel or outside of all; a charge
// books what passed since the last one to a row. So rows add up to the whole, to the nanosecond.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/support/module_scope.h"

namespace tessera {

// `data`: waiting for the batch; `exchange`: waiting for other ranks and their messages; `update`: optimiser and gradient norm;
// `rest`: after the last charge; `profiler`: its own work.
enum class ProfilePart { data, forward, backward, exchange, update, hooks, metrics, rest, profiler };
std::string_view name_of(ProfilePart part);

struct ProfiledWork {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;
};

struct ProfileRow {
  ProfilePart part;
  std::string what;  // the op's name, or what was done
  std::string layer;  // path of the module that ran it; "" outside of all
  std::int64_t calls = 0;
  std::int64_t kernel_ns = 0;  // inside kernels
  std::int64_t engine_ns = 0;  // outside of all kernels
  ProfiledWork work = {};

  std::int64_t ns() const noexcept { return kernel_ns + engine_ns; }
};

// Collects while a ProfileScope on it lives, from that thread alone.
class Profile {
 public:
  using Clock = std::int64_t (*)();  // in nanoseconds
  static std::int64_t steady_clock();

  explicit Profile(Clock clock = &steady_clock) : clock_(clock) {}
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // Null outside every scope: all that an op pays for then is to look.
  static Profile* active() noexcept { return active_; }

  // Books the time since the last charge, or since the scope began.
  void charge(ProfilePart part, std::string_view what, ModulePath layer = nullptr, ProfiledWork work = {});

  // One row for each part, layer and name. Their times sum to wall_ns().
  std::vector<ProfileRow> rows() const;
  std::int64_t wall_ns() const noexcept { return wall_ns_; }  // inside scopes

 private:
  friend class ProfileScope;
  friend class KernelTimer;

  struct Sum {
    std::int64_t calls = 0;
    std::int64_t kernel_ns = 0;
    std::int64_t engine_ns = 0;
    ProfiledWork work = {};
  };

  void begin();
  void end();
  void tick();  // what passed since the last reading goes to the kernel or the engine
  void enter_kernel();
  void leave_kernel();
  void book(Sum& sum);

  static thread_local constinit Profile* active_;
  Clock clock_;
  std::int64_t began_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::int64_t wall_ns_ = 0;
  int kernels_ = 0;  // open ones: a kernel's operands may be copied by another
  Sum pending_;
  Sum rest_;
  std::int64_t own_ns_ = 0;
  std::map<std::tuple<ProfilePart, std::string_view, std::string>, Sum> sums_;  // the path's text lives as long as the process
};

class ProfileScope {
 public:
  explicit ProfileScope(Profile& profile);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profile& profile_;
  Profile* previous_;
};

// Lives while a kernel runs.
class KernelTimer {
 public:
  KernelTimer() : profile_(Profile::active()) {
    if (profile_ != nullptr) profile_->enter_kernel();
  }
  ~KernelTimer() {
    if (profile_ != nullptr) profile_->leave_kernel();
  }
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  Profile* profile_;
};

// For work that is no op.
inline void charge_profile(ProfilePart part, std::string_view what) {
  if (Profile* const profile = Profile::active()) profile->charge(part, what);
}

}  // namespace tessera
