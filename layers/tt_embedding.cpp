#include "layers/tt_embedding.h"

#include <algorithm>

#include "core/config/read.h"
#include "core/ops/arithmetic.h"
#include "core/ops/cast.h"
#include "core/ops/dense_operands.h"
#include "core/ops/embedding.h"
#include "core/ops/matmul.h"
#include "core/ops/view.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/init.h"

namespace tessera {
namespace {

std::string modes_problem(const TtEmbeddingConfig& config) {
  return table_problem(config.vocabulary_modes, config.vocabulary, config.width_modes, config.width);
}

TtEmbeddingConfig with_defaults(TtEmbeddingConfig config) {
  if (config.vocabulary_modes.empty()) config.vocabulary_modes = padded_modes(config.vocabulary, 2);
  if (config.width_modes.empty()) config.width_modes = balanced_modes(config.width, 2);
  if (config.ranks.empty()) config.ranks.assign(config.vocabulary_modes.size() - 1, 1);
  return config;
}

std::vector<RankProblem> rank_problems(const TtEmbeddingConfig& config) {
  return tt_rank_problems(paired_modes(config.vocabulary_modes, config.width_modes), tt_ranks(config.ranks));
}

TtEmbeddingConfig checked(const TtEmbeddingConfig& given) {
  TtEmbeddingConfig config = with_defaults(given);
  const std::string problem = modes_problem(config);
  TESSERA_CHECK(problem.empty(), ConfigError, "tt_embedding: ", problem);
  check_ranks("", "tt_embedding", rank_problems(config));
  return config;
}

// The quotients x / value, rounded down. x holds whole numbers from 0 to 2^53.
Tensor whole_quotient(const Tensor& x, std::int64_t value) {
  const Var divisor(Tensor::full({}, static_cast<double>(value), x.dtype(), x.device()));
  return div(Var(x), divisor).value().to(DType::i64).to(x.dtype());
}

}  // namespace

std::vector<Tensor> digits_of(const Tensor& ids, std::int64_t size, const Modes& modes) {
  const NoGrad no_grad;
  std::vector<Tensor> digits(modes.size());
  Tensor rest = ids.to(DType::f64);
  const std::int64_t padded = product_of(modes);
  // Ids from `size` to the product of the modes would be padding rows. They are moved beyond that product, where the first digit
  // is too large.
  if (padded > size) rest = add(Var(rest), mul_scalar(Var(whole_quotient(rest, size)), static_cast<double>(padded))).value();
  for (std::size_t k = modes.size() - 1; k > 0; --k) {
    const Tensor above = whole_quotient(rest, modes[k]);
    digits[k] = sub(Var(rest), mul_scalar(Var(above), static_cast<double>(modes[k]))).value().to(DType::i64);
    rest = above;
  }
  digits[0] = rest.to(DType::i64);
  return digits;
}

TtRowCost tt_row_cost(const Modes& width_modes, std::span<const std::int64_t> ranks) {
  TtRowCost cost;
  std::int64_t width = 1;  // width of the product so far
  for (std::size_t k = 0; k < width_modes.size(); ++k) {
    const std::int64_t before = k == 0 ? 1 : ranks[k - 1], after = k == ranks.size() ? 1 : ranks[k];
    cost.kept = sum_of({cost.kept, product_of({before, width_modes[k], after})});
    if (k > 0) cost.macs = sum_of({cost.macs, product_of({width, before, width_modes[k], after})});
    width *= width_modes[k];
    if (k > 0 && k < ranks.size()) cost.kept = sum_of({cost.kept, product_of({width, after})});
  }
  return cost;
}

void TtEmbeddingConfig::fields(Fields& f) {
  f.add("vocabulary", vocabulary,
        {.help = "how many numbers there are", .range = at_least(1), .example = "50257", .observable = "plan"});
  f.add("width", width, {.help = "features of each", .range = at_least(1), .example = "768", .observable = "plan"});
  f.add("vocabulary_modes", vocabulary_modes,
        {.help = "sizes that multiply to the vocabulary or a little more; default: two, near equal",
         .range = at_least(1),
         .example = "[37, 37, 37]",
         .observable = "plan"});
  f.add("width_modes", width_modes,
        {.help = "sizes that the width is split into; default: two, balanced",
         .range = at_least(1),
         .example = "[8, 8, 12]",
         .observable = "plan"});
  f.add("ranks", ranks,
        {.help = "between the modes, one after the other; default: 1 each",
         .range = at_least(1),
         .example = "[16, 16]",
         .observable = "plan"});
  if (vocabulary < 1 || width < 1) return;  // the range reports this
  const TtEmbeddingConfig config = with_defaults(*this);
  const std::string problem = modes_problem(config);
  f.require(problem.empty(), "", problem);
  if (!problem.empty()) return;
  for (const RankProblem& rank : rank_problems(config)) f.require(false, "ranks", rank.message);
}

TtEmbedding::TtEmbedding(const TtEmbeddingConfig& config) : config_(checked(config)) {
  for (const Shape& shape : core_shapes(paired_modes(config_.vocabulary_modes, config_.width_modes), config_.ranks)) {
    cores_.add(add_parameter(str("core", cores_.size() + 1), Tensor::zeros(shape), ParameterRole::embedding));
    slices_.push_back(std::make_shared<int>());
  }
}

Value TtEmbedding::config() const { return write(config_); }

// Only on a CPU, because reading ids of a GPU would wait for it. On a GPU a wrong id gives NaN (core/ops/embedding.h).
void TtEmbedding::check_tokens(const Tensor& ids) const {
  TESSERA_CHECK(ids.dtype() == DType::i64, DTypeError, "tt_embedding '", path(), "': input is ", ids.dtype(), "; needs i64");
  if (!ids.device().is_cpu()) return;
  const Tensor numbers = ids.contiguous();
  const std::span all(numbers.data<std::int64_t>(), static_cast<std::size_t>(numbers.numel()));
  const auto wrong = std::ranges::find_if(all, [&](std::int64_t id) { return id < 0 || id >= config_.vocabulary; });
  TESSERA_CHECK(wrong == all.end(), ShapeError, "tt_embedding '", path(), "': id out of range: input[", wrong - all.begin(),
                "] is ", *wrong, "; needs 0 to ", config_.vocabulary - 1);
}

// The result is [n, width].
Var TtEmbedding::by_slices(const Var& x, std::span<const Var> cores) const {
  const std::int64_t rows = x.shape().numel();
  const std::vector<Tensor> digits = digits_of(x.value(), config_.vocabulary, config_.vocabulary_modes);
  Var product;
  std::int64_t done = 1;  // features of the product so far
  for (std::size_t k = 0; k < cores.size(); ++k) {
    const std::int64_t before = cores[k].shape()[0], after = cores[k].shape()[2];
    const std::int64_t mode = config_.vocabulary_modes[k], width = config_.width_modes[k];
    const Var slices = made_once(slices_[k], cores[k].value(), [&] {
      return reshape(permute(reshape(cores[k], {before, mode, width, after}), {1, 0, 2, 3}), {mode, before * width * after});
    });
    const Var taken = reshape(embedding(digits[k], slices), {rows, before, width * after});
    product = product.defined() ? matmul(product, taken) : taken;
    done *= width;
    product = reshape(product, {rows, done, after});
  }
  return reshape(product, {rows, config_.width});
}

Var TtEmbedding::by_table(const Var& x, std::span<const Var> cores) const {
  const Var table = made_once(table_, cores[0].value(), [&] {
    // The last product makes all elements and costs the most. Its cost grows with the rank between the halves.
    const auto left = static_cast<std::size_t>(std::ranges::min_element(config_.ranks) - config_.ranks.begin()) + 1;
    const Var padded = composed_pairs(cores, config_.vocabulary_modes, config_.width_modes, left);
    return padded.shape()[0] == config_.vocabulary ? padded : slice(padded, 0, 0, config_.vocabulary);
  });
  return reshape(embedding(x.value(), table), {x.shape().numel(), config_.width});
}

Var TtEmbedding::forward(const Var& x, const Context& context) {
  check_tokens(x.value());
  std::vector<Var> operands = cores_.vars();
  operands.insert(operands.begin(), x);
  const auto run = [this](std::size_t way, std::span<const Var> o) {
    return way == 0 ? by_slices(o.front(), o.subspan(1)) : by_table(o.front(), o.subspan(1));
  };
  const std::size_t way = execution_.choose(*this, operands, context.recompute, [&] {
    const std::int64_t macs = product_of({x.shape().numel(), tt_row_cost(config_.width_modes, config_.ranks).macs});
    return Ways{{"slices", "table"}, 2.0 * static_cast<double>(macs), run};
  });
  const Var rows = run_kept_or_recomputed(context.recompute, std::move(operands), {},
                                          [run, way](std::span<const Var> o, const Var&) { return run(way, o); });
  return cast(reshape(rows, x.shape().append(config_.width)), context.compute);
}

Shape TtEmbedding::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 1 && input.rank() < Shape::kMaxRank, ShapeError, "tt_embedding '", path(), "': input is ", input,
                "; needs [n, ...]");
  const Shape output = checked_size("tt_embedding", input.append(config_.width));
  const std::int64_t rows = output.erase(0).numel() / config_.width;
  trace_leaf(trace, input, output, product_of({rows, tt_row_cost(config_.width_modes, config_.ranks).macs}));
  return output;
}

void TtEmbedding::reset_parameters(std::uint64_t seed) { cores_.draw(seed, path(), kInitialDeviation * kInitialDeviation); }

Tensor TtEmbedding::dense_weight() const {
  return tt_matrix(cores_.composed(), config_.vocabulary_modes, config_.width_modes).slice(0, 0, config_.vocabulary).contiguous();
}

std::unique_ptr<Module> TtEmbedding::to_dense() const {
  auto dense = std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = config_.vocabulary, .width = config_.width});
  Parameter& weight = dense->parameter("weight");
  weight.set_value(dense_weight());
  weight.set_trainable(cores_[0].trainable());
  return dense;
}

}  // namespace tessera
