// Networks prepared for inference.
#pragma once

#include <memory>

#include "core/nn/module.h"
#include "core/nn/registry.h"

namespace tessera {

// Which norms are taken up: all, or only those that leave every compressed convolution compressed. A weight whose channels are
// scaled one by one may not fit the same form (Convolution::scaled), and a dense one would take its place.
enum class Folds { all, keeping_compressed };

// A copy of the network in which every convolution with a batch norm behind it, in a sequence or a residual block, has taken up
// that norm's running statistics and affine map (Jacob et al., CVPR 2018, section 3.2), and an Identity stands in the norm's
// place: in evaluation it answers what the original does, up to rounding, and a rectifier behind a convolution costs no walk over
// memory. Norms inside a factored convolution are taken up by its filters and a bias. The copy is on the network's device. It is
// not for training: that would train another network. `layers` knows every kind in the tree.
// Throws NumericError naming the tensor where one is NaN or Inf: rectifiers inside convolutions may hide a NaN.
std::unique_ptr<Module> folded(const Module& network, const Registry<Module>& layers, Folds folds = Folds::all);

// The same of a network of built-in layers: what inference is timed on.
std::unique_ptr<Module> for_inference(const Module& network);

}  // namespace tessera
