// Trains of matrices over pairs of modes (Novikov et al., NIPS 2015, "Tensorizing neural networks"): W[(o_1 ... o_d), (i_1 ...
// i_d)] = G_1[o_1, i_1] ... G_d[o_d, i_d], the last running fastest, with cores [r_(k-1), o_k i_k, r_k]. What linear layers,
// embeddings and convolutions of that form share.
#pragma once

#include <span>

#include "core/autograd/var.h"
#include "layers/tt_modes.h"

namespace tessera {

// The modes of the train, o_k i_k.
Modes paired_modes(const Modes& out_modes, const Modes& in_modes);

// [out, in] as the tensor [o_1 i_1, ..., o_d i_d] that the cores decompose, and back.
Tensor tt_tensor(const Tensor& weight, const Modes& out_modes, const Modes& in_modes);
Tensor tt_matrix(const Tensor& tensor, const Modes& out_modes, const Modes& in_modes);
Var tt_matrix(const Var& tensor, const Modes& out_modes, const Modes& in_modes);

// The product of neighbouring cores of these modes: [r_before, o_first ... o_last, i_first ... i_last, r_after]. Gradients to
// every core.
Var joined_pairs(std::span<const Var> cores, std::span<const std::int64_t> out_modes, std::span<const std::int64_t> in_modes);
// The product of all cores, [out, in], by the halves of the first `left` cores and of the others.
Var composed_pairs(std::span<const Var> cores, const Modes& out_modes, const Modes& in_modes, std::size_t left);

}  // namespace tessera
