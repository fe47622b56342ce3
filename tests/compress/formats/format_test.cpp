// The rules that every format obeys, over one table with a row for each kind of layer and format.
#include "compress/formats/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compress/formats/builtin.h"
#include "core/linalg/relative_error.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/compressed.h"
#include "layers/conv2d.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/tt_modes.h"
#include "tests/compress/formats/format_cases.h"
#include "tests/core/linalg/linalg_support.h"
#include "tests/layers/transformer_reference.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

class FormatTest : public ::testing::TestWithParam<FormatCase> {
 protected:
  FormatTest() : module_(dense_module()), format_(format_named(GetParam().format).for_layer(*module_)) {
    module_->reset_parameters(7);
    if (Parameter* bias = bias_of(*module_)) bias->set_value(random_tensor(bias->value().shape(), DType::f32, 8));
    Trace trace;
    module_->output_shape(GetParam().input, &trace);
    dense_ = dense_layer(*module_, trace.at(0)).value();
    if (!nearest()) {
      known_ = known_factors();
      const Shape shape = dense_.weight().shape();
      module_->parameter("weight").set_value(format_.compose(known_, shape));
    }
  }

  static std::unique_ptr<Module> dense_module() {
    const Value::Entry& entry = GetParam().dense.as_map().at(0);
    return builtin_layers().build(entry.key, entry.value);
  }

  // Whether project() comes close to the nearest weight from its default start. An iteration (CP) may not: its tests use a
  // weight composed of factors of the last ranks, and start from these factors at the last ranks.
  bool nearest() const { return GetParam().format != "cp"; }
  Factors known_factors() const {
    const std::int64_t rank = GetParam().ranks.back()[0].value;
    const auto drawn = [&](std::int64_t size, bool given, std::uint64_t seed) {
      return given ? random_tensor({rank, size}, DType::f32, seed) : Tensor();
    };
    return {drawn(dense_.in, true, 20), drawn(dense_.kernel.h, dense_.kernel.h > 1, 21),
            drawn(dense_.kernel.w, dense_.kernel.w > 1, 22), random_tensor({dense_.out, rank}, DType::f32, 23)};
  }
  Factors project(const Ranks& ranks) const {
    const bool from_known = !nearest() && ranks == GetParam().ranks.back();
    return format_.project(dense_.weight(), ranks, {}, from_known ? &known_ : nullptr);
  }

  static Parameter* bias_of(Module& module) {
    for (const auto& parameter : module.parameters()) {
      if (parameter->name() == "bias") return parameter.get();
    }
    return nullptr;
  }
  std::unique_ptr<Module> factored(const Ranks& ranks) const {
    const Factors factors = project(ranks);
    return format_.layer(dense_, ranks, &factors);
  }
  Tensor input() const {
    const std::int64_t limit = module_->input_limit();
    return limit > 0 ? whole_numbers(GetParam().input, limit) : random_tensor(GetParam().input, DType::f32, 9);
  }
  // Whether only the weight is decomposed. A train may give any values in the zero rows that pad a table.
  bool whole() const { return !dense_.looked_up || product_of(padded_modes(dense_.out, 2)) == dense_.out; }
  static Tensor forward(Module& module, const Tensor& x) { return module.forward(Var(x), {}).value(); }

  std::unique_ptr<Module> module_;
  const Format& format_;
  DenseLayer dense_;
  Factors known_;
};

double largest(const Tensor& tensor) { return largest_difference(tensor, Tensor::zeros(tensor.shape())); }

TEST_P(FormatTest, HoldsTheLayer) {
  EXPECT_EQ(format_.why_not(dense_), "");
  EXPECT_EQ(dense_.macs(), total_cost(*module_, GetParam().input).macs);
  EXPECT_EQ(dense_.parameters(), total_cost(*module_, GetParam().input).parameters);
}

TEST_P(FormatTest, FullRankEqualsTheDenseLayer) {
  const auto full = factored(GetParam().ranks.back());
  EXPECT_LT(linalg::relative_error(as_compressed(*full)->dense_weight(), dense_.weight()), 1e-5);
  const Tensor expected = forward(*module_, input());
  EXPECT_LT(largest_difference(forward(*full, input()), expected), 1e-5 * std::max(1.0, largest(expected)));
}

TEST_P(FormatTest, ForwardIsTheComposedWeights) {
  for (const Ranks& ranks : GetParam().ranks) {
    SCOPED_TRACE(to_string(ranks));
    const auto layer = factored(ranks);
    const std::unique_ptr<Module> composed = as_compressed(*layer)->to_dense();
    EXPECT_EQ(composed->kind(), module_->kind());
    const Tensor expected = forward(*composed, input());
    EXPECT_LT(largest_difference(forward(*layer, input()), expected), 1e-5 * std::max(1.0, largest(expected)));
    const Factors factors = project(ranks);
    const Tensor weight = format_.compose(factors, dense_.weight().shape());
    EXPECT_EQ(weight.shape(), dense_.weight().shape());
    EXPECT_LT(linalg::relative_error(as_compressed(*layer)->dense_weight(), weight), 1e-6);
  }
}

TEST_P(FormatTest, CostsAreThoseOfTheLayer) {
  for (const Ranks& ranks : GetParam().ranks) {
    SCOPED_TRACE(to_string(ranks));
    const auto layer = format_.layer(dense_, ranks);
    const Cost cost = total_cost(*layer, GetParam().input);
    const FormatCost told = format_.cost(dense_, ranks);
    EXPECT_EQ(told.macs, cost.macs);
    EXPECT_EQ(told.parameters, cost.parameters);
    EXPECT_EQ(as_compressed(*layer)->ranks(), ranks);
    EXPECT_EQ(layer->output_shape(GetParam().input), module_->output_shape(GetParam().input));
  }
}

// For tucker2 the elements between a 1x1 convolution over 7 x 9 pixels, the 3x3 one to 5 x 4 pixels, and another 1x1; and so on.
TEST(Formats, CountTheElementsBetweenTheFactors) {
  const DenseLayer conv{.path = "conv", .out = 7, .in = 5, .kernel = {3, 3}, .input = {7, 9}, .output = {5, 4}};
  const Format& tucker2 = format_named("tucker2");
  EXPECT_EQ(tucker2.cost(conv, {{"out", 4}, {"in", 3}}).activations, 63 * 3 + 20 * 4);
  EXPECT_EQ(tucker2.cost(conv, {{"out", 4}, {"in", 5}}).activations, 20 * 4);
  EXPECT_EQ(tucker2.cost(conv, {{"out", 7}, {"in", 5}}).activations, 0);
  const DenseLayer linear{.path = "fc", .out = 7, .in = 5, .input = {11, 1}, .output = {11, 1}};
  EXPECT_EQ(format_named("svd").cost(linear, {{"rank", 2}}).activations, 11 * 2);
  EXPECT_EQ(format_named("spatial_svd").cost(conv, {{"rank", 3}}).activations, 5 * 9 * 3);
  EXPECT_EQ(format_named("cp").cost(conv, {{"rank", 3}}).activations, 3 * (63 + 5 * 9 + 20));
  const Conv2d module({.in = 6, .out = 8});
  const DenseLayer train{
      .module = &module, .path = "conv", .out = 8, .in = 6, .kernel = {3, 3}, .input = {7, 9}, .output = {5, 7}};
  EXPECT_EQ(format_named("tt").cost(train, tt_ranks(Modes{2, 3, 4, 2})).activations, 63 * 4 + 35 * 3);
  EXPECT_EQ(format_named("tt_garipov").cost(train, tt_ranks(Modes{5, 4})).activations, 0);
  const Linear dense({.in = 12, .out = 10});
  const DenseLayer rows{.module = &dense, .path = "fc", .out = 10, .in = 12, .input = {11, 1}, .output = {11, 1}};
  EXPECT_EQ(format_named("tt").cost(rows, tt_ranks(Modes{2})).activations, 11 * 3 * 2 * 5);
}

// Each tail is a lower bound, and together they give an upper bound (De Lathauwer et al. 2000; Eckart & Young for one spectrum).
TEST_P(FormatTest, ErrorFallsWithRankBetweenTheBoundsOfItsSpectra) {
  const std::vector<std::vector<double>> spectra = format_.spectra(dense_.weight());
  ASSERT_EQ(spectra.size(), format_.largest_ranks(dense_).size());
  double last = std::numeric_limits<double>::infinity();
  for (const Ranks& ranks : GetParam().ranks) {
    SCOPED_TRACE(to_string(ranks));
    double sum = 0, most = 0, all = 0;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      double tail = 0;
      all = 0;
      for (std::size_t i = 0; i < spectra[k].size(); ++i) {
        const double square = spectra[k][i] * spectra[k][i];
        all += square;
        if (static_cast<std::int64_t>(i) >= ranks[k].value) tail += square;
      }
      sum += tail;
      most = std::max(most, tail);
    }
    const Factors factors = project(ranks);
    const double error = linalg::relative_error(format_.compose(factors, dense_.weight().shape()), dense_.weight());
    EXPECT_LE(error, last);
    if (nearest()) {
      EXPECT_LE(error * error, sum / all + 1e-6);  // f32 factors
    }
    if (whole()) {
      EXPECT_GE(error * error, most / all - 1e-6);
    }
    last = error;
  }
}

TEST_P(FormatTest, IllegalRanksAreOneClearError) {
  const FormatCase& c = GetParam();
  const std::vector<RankProblem> problems = format_.rank_problems(dense_, c.illegal);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].message, c.message);
  EXPECT_TRUE(message_of<ConfigError>([&] { format_.layer(dense_, c.illegal); }).ends_with(": " + c.message));
  for (const Ranks& ranks : c.ranks) {
    EXPECT_TRUE(format_.rank_problems(dense_, ranks).empty()) << to_string(ranks);
    EXPECT_EQ(format_.legal_ranks(dense_, ranks), ranks);
  }
  const std::vector<std::int64_t> largest_ranks = format_.largest_ranks(dense_);
  Ranks largest_legal = c.ranks.back();
  for (std::size_t k = 0; k < largest_legal.size(); ++k) largest_legal[k].value = largest_ranks.at(k);
  EXPECT_TRUE(format_.rank_problems(dense_, largest_legal).empty()) << to_string(largest_legal);
}

TEST_P(FormatTest, KeepsBiasAndTrainability) {
  module_->parameter("weight").set_trainable(false);
  const auto layer = factored(GetParam().ranks.front());
  const Parameter* const bias = bias_of(*module_);
  for (const auto& parameter : layer->parameters()) {
    if (parameter->name() != "bias") {
      EXPECT_FALSE(parameter->trainable()) << parameter->name();
      continue;
    }
    EXPECT_TRUE(parameter->trainable());
    EXPECT_EQ(values(parameter->value()), values(bias->value()));
    EXPECT_FALSE(parameter->value().shares_storage(bias->value()));
  }
  EXPECT_EQ(bias_of(*layer) != nullptr, bias != nullptr);
}

TEST_P(FormatTest, ConfigRebuildsTheLayerAndTorchNamesEveryTensor) {
  const auto layer = factored(GetParam().ranks.front());
  const std::unique_ptr<Module> rebuilt = rebuild(describe(*layer), builtin_layers());
  for (const auto& parameter : layer->parameters()) rebuilt->parameter(parameter->name()).set_value(parameter->value());
  EXPECT_EQ(values(forward(*rebuilt, input())), values(forward(*layer, input())));
  const std::vector<TorchPart> parts = as_compressed(*layer)->torch_tensors();
  ASSERT_EQ(parts.size(), layer->parameters().size());
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].tensor, layer->parameters()[i]->name());
}

TEST_P(FormatTest, NaNIsRefused) {
  module_->parameter("weight").value().fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(factored(GetParam().ranks.front()), NumericError);
  EXPECT_THROW(factored(GetParam().ranks.back()), NumericError);
}

INSTANTIATE_TEST_SUITE_P(Formats, FormatTest, ::testing::ValuesIn(format_cases()),
                         [](const auto& row) { return str(row.param.format, '_', row.index); });

TEST(Formats, SayWhatTheyCannotHold) {
  const auto reason = [](const std::string& format, std::unique_ptr<Module> module, const Shape& input) {
    Trace trace;
    module->output_shape(input, &trace);
    return format_named(format).for_layer(*module).why_not(dense_layer(*module, trace.at(0)).value());
  };
  const auto conv = [](const Conv2dConfig& config) { return std::make_unique<Conv2d>(config); };
  EXPECT_EQ(reason("tucker2", conv({.in = 4, .out = 4, .kernel = {1, 1}}), {1, 3, 3, 4}),
            "has a 1x1 kernel; tucker2 needs a larger one");
  EXPECT_EQ(reason("tucker2", conv({.in = 4, .out = 4, .groups = 2}), {1, 3, 3, 4}), "has 2 groups; tucker2 needs 1");
  EXPECT_EQ(reason("spatial_svd", conv({.in = 4, .out = 4, .kernel = {1, 1}}), {1, 3, 3, 4}),
            "has a 1x1 kernel; spatial_svd needs a larger one");
  EXPECT_EQ(reason("spatial_svd", conv({.in = 4, .out = 4, .groups = 2}), {1, 3, 3, 4}), "has 2 groups; spatial_svd needs 1");
  EXPECT_EQ(reason("cp", conv({.in = 4, .out = 4, .kernel = {1, 1}}), {1, 3, 3, 4}), "has a 1x1 kernel; cp needs a larger one");
  EXPECT_EQ(reason("cp", conv({.in = 4, .out = 4, .groups = 2}), {1, 3, 3, 4}), "has 2 groups; cp needs 1");
  EXPECT_EQ(reason("tt", conv({.in = 4, .out = 6, .kernel = {1, 1}}), {1, 3, 3, 4}), "has a 1x1 kernel; tt needs a larger one");
  EXPECT_EQ(reason("tt", conv({.in = 4, .out = 4, .groups = 2}), {1, 3, 3, 4}), "has 2 groups; tt needs 1");
  EXPECT_EQ(reason("tt", conv({.in = 3, .out = 4}), {1, 3, 3, 3}),
            "has 3 input channels, which do not split into 2 modes above 1");
  EXPECT_EQ(reason("tt_garipov", conv({.in = 4, .out = 6, .kernel = {1, 1}}), {1, 3, 3, 4}),
            "has a 1x1 kernel; tt_garipov needs a larger one");
  EXPECT_EQ(reason("tt_garipov", conv({.in = 4, .out = 4, .groups = 2}), {1, 3, 3, 4}), "has 2 groups; tt_garipov needs 1");
  EXPECT_EQ(reason("tt_garipov", conv({.in = 4, .out = 5}), {1, 3, 3, 4}),
            "has 5 output channels, which do not split into 2 modes above 1");
  EXPECT_EQ(reason("tt_garipov", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 4}), {1, 4}),
            "is a linear; tt_garipov factors conv2d");
  const auto table = [](std::int64_t vocabulary, std::int64_t width) {
    return std::make_unique<Embedding>(EmbeddingConfig{.vocabulary = vocabulary, .width = width});
  };
  EXPECT_EQ(reason("tt", table(257, 16), {1, 5}), "");
  EXPECT_EQ(reason("tt", table(2, 16), {1, 5}), "has 2 rows, which do not split into 2 modes above 1");
  EXPECT_EQ(reason("tt", table(257, 7), {1, 5}), "has 7 features in a row, which do not split into 2 modes above 1");
  EXPECT_EQ(reason("svd", table(257, 16), {1, 5}), "is an embedding; svd factors linear and 1x1 conv2d");
  EXPECT_EQ(reason("cp", table(257, 16), {1, 5}), "is an embedding; cp factors conv2d");
  EXPECT_EQ(reason("svd", conv({.in = 4, .out = 4}), {1, 3, 3, 4}), "has a 3x3 kernel; svd needs 1x1");
  EXPECT_EQ(reason("svd", conv({.in = 4, .out = 4, .kernel = {1, 1}, .groups = 4}), {1, 3, 3, 4}), "has 4 groups; svd needs 1");
  EXPECT_EQ(reason("tucker2", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 3}), {1, 4}),
            "is a linear; tucker2 factors conv2d");
}

TEST(Formats, ATrainSplitsChannelsAsAsked) {
  const std::unique_ptr<Format> three = format_named("tt").with_modes({.count = 3});
  const std::unique_ptr<Format> given = format_named("tt").with_modes({.out = {4, 8, 4}, .in = {4, 4, 4}});
  const auto layer_of = [](const Conv2d& conv) {
    Trace trace;
    conv.output_shape({1, 8, 8, 64}, &trace);
    return dense_layer(conv, trace.at(0)).value();
  };
  const Conv2d conv({.in = 64, .out = 128, .padding = {1, 1}});
  const Conv2d square({.in = 64, .out = 64, .padding = {1, 1}});
  EXPECT_EQ(three->largest_ranks(layer_of(conv)), (std::vector<std::int64_t>{4, 16, 128, 64, 16, 4}));
  EXPECT_EQ(given->largest_ranks(layer_of(conv)), (std::vector<std::int64_t>{4, 32, 128, 64, 16, 4}));
  EXPECT_EQ(given->why_not(layer_of(conv)), "");
  EXPECT_EQ(format_named("tt").with_modes({.out = {4, 8, 4}})->largest_ranks(layer_of(conv)),
            given->largest_ranks(layer_of(conv)));
  EXPECT_EQ(given->why_not(layer_of(square)), "has 64 output channels; its modes 4·8·4 multiply to 128");
  EXPECT_EQ(format_named("svd").with_modes({}), nullptr);
  EXPECT_EQ(format_named("tt").with_modes({.count = 4})->why_not(layer_of(conv)),
            "is a conv2d; tt splits its channels into 3 modes at most");
  const std::unique_ptr<Format> pairs = format_named("tt_garipov").with_modes({.out = {4, 8, 4}, .in = {4, 4, 4}});
  EXPECT_EQ(pairs->largest_ranks(layer_of(conv)), (std::vector<std::int64_t>{9, 144, 16}));
  EXPECT_EQ(format_named("tt_garipov").with_modes({.count = 4})->largest_ranks(layer_of(conv)),
            (std::vector<std::int64_t>{9, 36, 256, 16}));
  EXPECT_EQ(pairs->why_not(layer_of(square)), "has 64 output channels; its modes 4·8·4 multiply to 128");
}

TEST(Formats, ATrainSplitsTheRowsOfATableAndItsWidthAsAsked) {
  const Embedding table({.vocabulary = 50257, .width = 768});
  Trace trace;
  table.output_shape({1, 9}, &trace);
  const DenseLayer dense = dense_layer(table, trace.at(0)).value();
  EXPECT_TRUE(dense.looked_up);
  EXPECT_EQ(dense.output_positions(), 9);
  const auto held = [&](const ModesConfig& modes, const auto& answer) {
    const std::unique_ptr<Format> format = format_named("tt").with_modes(modes);
    return answer(format->for_layer(table));
  };
  const auto cost = [&](const ModesConfig& modes, const Ranks& ranks) {
    return held(modes, [&](const Format& format) { return format.cost(dense, ranks); });
  };
  const auto reason = [&](const ModesConfig& modes) {
    return held(modes, [&](const Format& format) { return format.why_not(dense); });
  };
  // The table has 37·37·37 rows of 8·8·12.
  EXPECT_EQ(cost({.count = 3}, tt_ranks(Modes{16, 20})).parameters, 37 * 8 * 16 + 16 * 37 * 8 * 20 + 20 * 37 * 12);
  EXPECT_EQ(cost({.count = 3}, tt_ranks(Modes{16, 20})).macs, 9 * (8 * 16 * 8 * 20 + 64 * 20 * 12));
  EXPECT_EQ(cost({.out = {30, 41, 41}}, tt_ranks(Modes{2, 3})).parameters, 30 * 8 * 2 + 2 * 41 * 8 * 3 + 3 * 41 * 12);
  EXPECT_EQ(cost({.in = {24, 32}}, tt_ranks(Modes{2})).parameters, 224 * 24 * 2 + 2 * 225 * 32);
  EXPECT_EQ(reason({.out = {100, 500}}), "has 50257 rows; its modes 100·500 multiply to 50000, which are too few");
  EXPECT_EQ(reason({.out = {300, 500}}), "has 50257 rows; its modes 300·500 multiply to 150000, more than twice as many");
  EXPECT_EQ(reason({.in = {32, 32}}), "has 768 features in a row; its modes 32·32 multiply to 1024");
  EXPECT_FALSE(held({}, [](const Format& format) { return format.lowers_macs(); })) << "a look-up takes none";
  EXPECT_TRUE(format_named("tt").lowers_macs());
}

// The parameter count of Garipov et al. 2016, at ranks that no decomposition here uses.
TEST(Formats, ATrainOverPairsHasThePublishedParameters) {
  const std::unique_ptr<Format> pairs = format_named("tt_garipov").with_modes({.out = {4, 8, 4}, .in = {4, 4, 4}});
  const DenseLayer conv{
      .path = "conv", .out = 128, .in = 64, .kernel = {3, 3}, .bias = true, .input = {16, 16}, .output = {16, 16}};
  const FormatCost cost = pairs->cost(conv, tt_ranks(Modes{27, 22, 22}));
  EXPECT_EQ(cost.parameters, 243 + 9504 + 15488 + 352 + 128);
  EXPECT_EQ(cost.macs, conv.macs());
  EXPECT_FALSE(pairs->lowers_macs());
}

TEST(Formats, UnknownNamesListTheKnown) {
  EXPECT_EQ(message_of<ConfigError>([] { format_named("tuker2"); }),
            "unknown format 'tuker2'; known: tucker2 svd spatial_svd cp tt tt_garipov");
}

}  // namespace
}  // namespace tessera::testing
