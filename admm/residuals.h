// How far a constrained training is from agreement, and what the course of the residuals says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/fields.h"

namespace tessera {

// After one update. A layer's primal residual is ||W - Z||, its dual one rho ||Z - Z before||, Frobenius norms.
struct Residuals {
  std::int64_t step = 0;  // of the stage, steps done
  double rho = 0;  // that the steps before the update were taken with
  double primal = 0;  // over all layers: the root of the sum of squares
  double dual = 0;  // likewise
  double relative = 0;  // largest ||W - Z|| / ||W|| of a layer; of a weight that is zero a very large number
  std::string layer = {};  // which has it

  void fields(Fields& f);
};

// What a history says about the newest update, the last of it.
enum class Course {
  falling,
  // relative is above kAgreement, and its least value over the last kStallUpdates updates is less than a tenth below that of as
  // many updates before them.
  stalled,
  diverged,  // relative is above kDiverged
};
inline constexpr double kAgreement = 1e-2;
inline constexpr std::size_t kStallUpdates = 5;
inline constexpr double kDiverged = 10;  // W itself is 1 away from zero; with a small rho Z may swing about it for a while
Course course_of(const std::vector<Residuals>& history);

}  // namespace tessera
