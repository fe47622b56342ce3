// Rows of a table that is a tensor train over pairs of modes (layers/tt_pairs.h; Hrinchuk et al., 2020, "Tensorized embedding
// layers"; Yin et al., MLSys 2021, "TT-Rec"): row t of width w_1 ... w_d is G_1[t_1] ... G_d[t_d], where t_1 ... t_d are the
// digits of t in the mixed radix v_1, ..., v_d. v_1 ... v_d is the vocabulary, or a little more: rows beyond it are never looked
// up. Forward looks slices up in each core and multiplies those of a token, or it multiplies the cores to the whole table, a
// product of weights alone, and looks rows up there. The clock chooses (layers/execution.h). x i64 [...] -> y [..., width], in
// the dtype that the context computes in; the products are of the cores' dtype. Saved for backward are digits and slices, or the
// cores' products.
#pragma once

#include "core/config/fields.h"
#include "layers/compressed.h"
#include "layers/embedding.h"
#include "layers/execution.h"
#include "layers/tt_cores.h"
#include "layers/tt_pairs.h"

namespace tessera {

struct TtEmbeddingConfig {
  std::int64_t vocabulary = 1, width = 1;
  Modes vocabulary_modes = {}, width_modes = {};  // as many of one as of the other, two to four; empty: two, near equal
  std::vector<std::int64_t> ranks = {};  // empty: 1 each
  void fields(Fields& f);
};

// The digits of ids i64 [...] in the mixed radix of these modes, the last running fastest: one i64 tensor of the ids' shape for
// each mode. The modes multiply to at least `size`. An id that is negative or at least `size` has a digit outside of its mode.
std::vector<Tensor> digits_of(const Tensor& ids, std::int64_t size, const Modes& modes);

// The cost of a row by slices: multiply-adds, and the elements of slices and products that are kept for backward.
struct TtRowCost {
  std::int64_t macs = 0;
  std::int64_t kept = 0;
};
TtRowCost tt_row_cost(const Modes& width_modes, std::span<const std::int64_t> ranks);

// Parameters: core1 [1, v_1 w_1, r_1], ..., core(d) [r_(d-1), v_d w_d, 1].
class TtEmbedding final : public Module, public CompressedLayer {
 public:
  using Config = TtEmbeddingConfig;
  explicit TtEmbedding(const TtEmbeddingConfig& config);  // throws ConfigError on invalid modes or ranks

  void set_cores(std::span<const Tensor> cores) { cores_.set(cores); }
  void take_traits(const Embedding& dense) { cores_.set_trainable(dense.weight().trainable()); }

  std::string_view kind() const override { return "tt_embedding"; }
  Value config() const override;
  // Throws DTypeError unless x is i64, and on a CPU ShapeError on what is no token.
  Var forward(const Var& x, const Context& context) override;
  // Counts the MACs of rows by slices. A dense table has none.
  Shape output_shape(const Shape& input, Trace* trace = nullptr) const override;
  // Normal numbers of one variance for all cores, so that the composed table has that of a dense one's initial values.
  void reset_parameters(std::uint64_t seed) override;
  std::int64_t input_limit() const override { return config_.vocabulary; }

  Ranks ranks() const override { return tt_ranks(config_.ranks); }
  Tensor dense_weight() const override;  // [vocabulary, width]
  std::unique_ptr<Module> to_dense() const override;  // an Embedding
  std::vector<TorchPart> torch_tensors() const override { return cores_.torch_tensors(false, false); }

 private:
  void check_tokens(const Tensor& ids) const;
  Var by_slices(const Var& x, std::span<const Var> cores) const;
  Var by_table(const Var& x, std::span<const Var> cores) const;

  TtEmbeddingConfig config_;
  TtCores cores_;
  Execution execution_;
  // Keys for made_once(): each core with its slices as rows, and the table.
  std::vector<std::shared_ptr<const void>> slices_;
  std::shared_ptr<const void> table_ = std::make_shared<int>();
};

}  // namespace tessera
