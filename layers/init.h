// Fresh parameter values, drawn from counter-based streams so that no layer's numbers depend on another's.
#pragma once

#include "core/nn/parameter.h"
#include "core/rng.h"

namespace tessera {

// The deviation of the initial weights and tables of transformers: GPT-2 and BERT (Radford et al., 2019; Devlin et al., 2019,
// initializer_range).
inline constexpr double kInitialDeviation = 0.02;

// N(0, 2 / fan): He et al. 2015, "Delving deep into rectifiers", eq. 10 (fan = inputs) and eq. 14 (fan = outputs).
void init_kaiming_normal(Parameter& parameter, RngStream stream, std::int64_t fan);
void init_normal(Parameter& parameter, RngStream stream, double deviation);  // N(0, deviation^2)
// U(-bound, bound).
void init_uniform(Parameter& parameter, RngStream stream, double bound);
void init_constant(Parameter& parameter, double value);

}  // namespace tessera
