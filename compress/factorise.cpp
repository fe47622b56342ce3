#include "compress/factorise.h"

#include <algorithm>

#include "compress/selector.h"
#include "core/error.h"
#include "core/linalg/tucker.h"

namespace tessera {

namespace {

bool is_text_list(const Value& value) {
  if (!value.is_list() || value.as_list().empty()) return false;
  const Value::List& items = value.as_list();
  return std::all_of(items.begin(), items.end(), [](const Value& item) { return item.is_string(); });
}

std::int64_t pixels(const Shape& nhwc) { return nhwc.dim(1) * nhwc.dim(2); }

RankLayer rank_layer(const Conv2d& conv, const LayerCost& cost, bool with_spectra) {
  const Conv2dConfig& options = conv.options();
  RankLayer layer{.path = conv.path(), .out = options.out, .in = options.in, .taps = options.kernel.h * options.kernel.w,
                  .input_pixels = pixels(cost.input), .output_pixels = pixels(cost.output),
                  .bias = options.bias ? options.out : 0, .out_spectrum = {}, .in_spectrum = {}};
  if (with_spectra) {
    layer.out_spectrum = linalg::mode_spectrum(conv.weight().value(), 0);
    layer.in_spectrum = linalg::mode_spectrum(conv.weight().value(), 3);
  }
  return layer;
}

std::vector<std::string> layer_paths(Module& root) {
  std::vector<std::string> paths;
  for_each_module(root, [&](Module& module) {
    if (!module.path().empty()) paths.push_back(module.path());
  });
  return paths;
}

}  // namespace

void HooiConfig::fields(Fields& f) {
  f.add("iterations", iterations, {.help = "most sweeps of the orthogonal iteration; 0 = truncated HOSVD only",
                                   .range = non_negative, .example = "10"});
  f.add("tolerance", tolerance, {.help = "stop when a sweep lowers the relative error by less", .range = non_negative,
                                 .example = "1e-5"});
}

void FactoriseConfig::fields(Fields& f) {
  f.add("layers", layers, {.help = "selector of the layers, or a list of selectors", .example = "layer[23].*.conv*",
                           .observable = "report", .required = true});
  f.add("format", format, {.help = "form of the factored weight", .choices = {"tucker2"}, .observable = "report"});
  f.add("ranks", ranks, {.help = "how many ranks to keep", .observable = "report", .required = true});
  f.add("keep", keep, {.help = "which factored layers to keep", .choices = {"always"}, .observable = "report"});
  f.add("hooi", hooi, {.help = "refinement of the decomposition"});
  f.require(layers.is_null() || layers.is_string() || is_text_list(layers), "layers", "needs a selector or a list of selectors");
}

std::vector<std::string> FactoriseConfig::patterns() const {
  if (!layers.is_list()) return {layers.as_string()};
  std::vector<std::string> all;
  for (const Value& item : layers.as_list()) all.push_back(item.as_string());
  return all;
}

std::string why_not_factorise(const Module& module) {
  const auto* conv = dynamic_cast<const Conv2d*>(&module);
  if (conv == nullptr) return str("is a ", module.kind(), "; tucker2 factors conv2d");
  const Conv2dConfig& options = conv->options();
  if (options.groups != 1) return str("has ", options.groups, " groups; tucker2 needs 1");
  if (options.kernel == Extent{1, 1}) return "has a 1x1 kernel; tucker2 needs a larger one";
  return "";
}

void FactorisePass::prepare(Module& root, const Shape& input) {
  plan_.clear();
  const std::vector<std::string> matched = select(config_.patterns(), layer_paths(root));
  Trace trace;
  root.output_shape(input, &trace);
  const auto cost_of = [this](const LayerCost& row) { return config_.ranks.params ? row.parameters : row.macs; };

  std::vector<RankLayer> layers;
  FixedCost fixed;
  for (const LayerCost& row : trace) {
    const Module& module = find_module(root, row.path);
    const auto* conv = dynamic_cast<const Conv2d*>(&module);
    if (conv == nullptr || std::find(matched.begin(), matched.end(), row.path) == matched.end()) {
      fixed.other += cost_of(row);
    } else if (std::string reason = why_not_factorise(module); !reason.empty()) {
      fixed.matched += cost_of(row);
      plan_[row.path] = {std::nullopt, std::move(reason)};
    } else {
      layers.push_back(rank_layer(*conv, row, !config_.ranks.out));
    }
  }
  TESSERA_CHECK(!layers.empty() || !plan_.empty(), ConfigError, "factorise: layers ", to_json(config_.layers),
                " match no convolution; matched: ", matched.front(), matched.size() > 1 ? ", ..." : "");
  const std::vector<RankChoice> choices = select_ranks(config_.ranks, layers, fixed);
  for (std::size_t i = 0; i < layers.size(); ++i) plan_[layers[i].path] = choices[i];
}

bool FactorisePass::matches(const std::string& path, const Module&) const { return plan_.find(path) != plan_.end(); }

std::unique_ptr<Module> FactorisePass::rewrite(const Module& module, LayerReport& report) const {
  const RankChoice& choice = plan_.at(module.path());
  report.format = config_.format;
  report.ranks_asked = to_string(config_.ranks);
  report.reason = choice.reason;
  if (!choice.ranks) return nullptr;
  const auto& dense = static_cast<const Conv2d&>(module);
  auto factored = Tucker2Conv2d::from_dense(dense, *choice.ranks,
                                            {.max_iterations = config_.hooi.iterations, .tolerance = config_.hooi.tolerance});
  report.ranks = choice.ranks;
  report.relative_error = linalg::relative_error(factored->dense_weight(), dense.weight().value());
  report.decision = Decision::factored;
  return factored;
}

}  // namespace tessera
