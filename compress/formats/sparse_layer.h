// The sparse layers that masked ones become.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera {

// The weights of a layer that has a sparse form, in the order of its forward: of a linear layer, a convolution, or a layer that
// is a chain of them (SvdLinear, FactoredConv2d) each factor. None for every other module.
std::vector<const Parameter*> sparse_candidates(const Module& module);

// Why a layer of candidates cannot be sparse: "has 4 groups; sparse kernels need 1". "" where it can.
std::string why_not_sparse(const Module& module);

// The layer that keeps what the masks keep, with the candidates' values, bias and trainability. A chain becomes a Sequential of
// its norms and its factors, which are sparse where they have a mask and one group, else dense. In PyTorch's layout it stays the
// same.
std::unique_ptr<Module> sparse_layer(const Module& module);

}  // namespace tessera
