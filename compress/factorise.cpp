#include "compress/factorise.h"

#include <algorithm>
#include <numeric>

#include "core/finite.h"
#include "core/linalg/tucker.h"
#include "core/nn/selector.h"
#include "core/support/error.h"

namespace tessera {

namespace {

std::int64_t pixels(const Shape& nhwc) { return nhwc.dim(1) * nhwc.dim(2); }

RankLayer rank_layer(const Conv2d& conv, const LayerCost& cost, bool with_spectra) {
  const Conv2dConfig& options = conv.options();
  RankLayer layer{.path = conv.path(),
                  .out = options.out,
                  .in = options.in,
                  .taps = options.kernel.h * options.kernel.w,
                  .input_pixels = pixels(cost.input),
                  .output_pixels = pixels(cost.output),
                  .bias = options.bias ? options.out : 0,
                  .out_spectrum = {},
                  .in_spectrum = {}};
  if (with_spectra) {
    layer.out_spectrum = linalg::mode_spectrum(conv.weight().value(), 0);
    layer.in_spectrum = linalg::mode_spectrum(conv.weight().value(), 3);
  }
  return layer;
}

// Explicit ranks outside their modes, at the key that says so. An empty group of layers has none.
void append_rank_problems(const RankConfig& ranks, const std::vector<RankLayer>& layers, const std::string& key,
                          std::vector<BlockProblem>& problems) {
  if (!ranks.out) return;
  for (const RankLayer& layer : layers) {
    const std::pair<const char*, Tucker2Ranks> modes[]{{".out", {.out = *ranks.out, .in = 1}},
                                                       {".in", {.out = 1, .in = *ranks.in}}};
    for (const auto& [mode, asked] : modes) {
      try {
        check_ranks(layer.path, layer.out, layer.in, asked);
      } catch (const ConfigError& error) {
        problems.push_back({key + mode, error.what()});
      }
    }
  }
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
  f.add("iterations", iterations,
        {.help = "most sweeps of the orthogonal iteration; 0 = truncated HOSVD only",
         .range = non_negative,
         .example = "10",
         .observable = "bytes"});
  f.add("tolerance", tolerance,
        {.help = "stop when a sweep lowers the relative error by less",
         .range = non_negative,
         .example = "0.01",
         .observable = "bytes"});
}

void FactoriseConfig::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "selector of the layers, or a list of selectors",
         .example = "'layer[23].*.conv*'",
         .observable = "report",
         .required = true});
  f.add("format", format,
        {.help = "form of the factored weight", .choices = {"tucker2"}, .observable = "none: only tucker2 exists"});
  f.add_one_or_list("ranks", ranks, rank_rules,
                    {.help = "how many ranks to keep; in a list of rules the last that matches a layer holds for it",
                     .example = "[{layers: '*', macs: 0.4}, {layers: layer3.1.conv2, out: 32, in: 32}]",
                     .observable = "report",
                     .required = true});
  f.add("keep", keep,
        {.help = "faster: a layer that is not faster than its dense original goes back; always: it stays, and is marked",
         .choices = {"faster", "always"},
         .observable = "report"});
  f.add("keep_for", keep_for,
        {.help = "where it has to be faster", .example = "{batch: 128, phase: training}", .observable = "report"});
  f.add("hooi", hooi, {.help = "refinement of the decomposition", .example = "{iterations: 10}", .observable = "bytes"});
  f.require(is_selector(layers), "layers", "needs a selector or a list of selectors");
  f.require(!rank_rules.empty() || ranks.kinds() == 1, "ranks", "is an empty list; needs a rule");
}

std::string why_not_factorise(const Module& module) {
  const auto* conv = dynamic_cast<const Conv2d*>(&module);
  if (conv == nullptr) return str("is a ", module.kind(), "; tucker2 factors conv2d");
  const Conv2dConfig& options = conv->options();
  if (options.groups != 1) return str("has ", options.groups, " groups; tucker2 needs 1");
  if (options.kernel == Extent{1, 1}) return "has a 1x1 kernel; tucker2 needs a larger one";
  return "";
}

// What a network offers: its leaves, and which of them are matched convolutions.
struct FactorisePass::Matched {
  Trace trace;
  std::vector<std::size_t> rows;  // of the trace
  std::vector<const Conv2d*> convs;  // at these rows
};

// The rows, as indices into Matched, that one rule holds for.
struct FactorisePass::Group {
  const RankConfig* ranks;
  std::string key;  // of the rule, in the block
  std::vector<std::size_t> members;
};

std::optional<FactorisePass::Matched> FactorisePass::match(Module& root, const Shape& input,
                                                           std::vector<BlockProblem>& problems) const {
  std::vector<std::string> selected;
  try {
    selected = select(selector_patterns(config_.layers), layer_paths(root));
  } catch (const ConfigError& error) {
    problems.push_back({"layers", error.what()});
    return std::nullopt;
  }
  Matched matched;
  root.output_shape(input, &matched.trace);
  for (std::size_t row = 0; row < matched.trace.size(); ++row) {
    const std::string& path = matched.trace[row].path;
    const auto* conv = dynamic_cast<const Conv2d*>(&find_module(root, path));
    if (conv == nullptr || std::find(selected.begin(), selected.end(), path) == selected.end()) continue;
    matched.rows.push_back(row);
    matched.convs.push_back(conv);
  }
  if (!matched.convs.empty()) return matched;
  problems.push_back({"layers", str("factorise: layers ", to_json(config_.layers),
                                    " match no convolution; matched: ", selected.front(), selected.size() > 1 ? ", ..." : "")});
  return std::nullopt;
}

std::vector<FactorisePass::Group> FactorisePass::groups(const Matched& matched, std::vector<BlockProblem>& problems) const {
  std::vector<Group> made;
  std::vector<std::string> paths;
  for (const Conv2d* conv : matched.convs) paths.push_back(conv->path());
  if (config_.rank_rules.empty()) {
    made.push_back({&config_.ranks, "ranks", std::vector<std::size_t>(paths.size())});
    std::iota(made.back().members.begin(), made.back().members.end(), std::size_t{0});
    return made;
  }
  for (std::size_t r = 0; r < config_.rank_rules.size(); ++r) {
    made.push_back({&config_.rank_rules[r].ranks, str("ranks[", r, ']'), {}});
  }
  const auto rule_of = assign_rules(config_.rank_rules, paths, problems);
  for (std::size_t i = 0; i < rule_of.size(); ++i) {
    if (rule_of[i]) made[*rule_of[i]].members.push_back(i);
  }
  return made;
}

void FactorisePass::choose(const Matched& matched, const Group& group, std::vector<BlockProblem>& problems) {
  const RankConfig& ranks = *group.ranks;
  const auto cost_of = [&](const LayerCost& row) { return ranks.params ? row.parameters : row.macs; };
  FixedCost fixed;
  for (const LayerCost& row : matched.trace) fixed.other += cost_of(row);
  std::vector<RankLayer> layers;
  for (const std::size_t i : group.members) {
    const LayerCost& row = matched.trace[matched.rows[i]];
    const Conv2d& conv = *matched.convs[i];
    fixed.other -= cost_of(row);
    if (std::string reason = why_not_factorise(conv); reason.empty()) {
      layers.push_back(rank_layer(conv, row, !ranks.out));
    } else {
      fixed.matched += cost_of(row);
      Planned& planned = plan_[row.path];
      planned.choice.reason = std::move(reason);
      planned.asked = to_string(ranks);
    }
  }
  const std::size_t before = problems.size();
  append_rank_problems(ranks, layers, group.key, problems);
  if (problems.size() > before) return;
  try {
    const std::vector<RankChoice> choices = select_ranks(ranks, layers, fixed);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Planned& planned = plan_[layers[i].path];
      planned.choice = choices[i];
      planned.asked = to_string(ranks);
    }
  } catch (const ConfigError& error) {
    problems.push_back({group.key, error.what()});
  }
}

std::vector<BlockProblem> FactorisePass::try_prepare(Module& root, const Shape& input) {
  plan_.clear();
  std::vector<BlockProblem> problems;
  const std::optional<Matched> matched = match(root, input, problems);
  if (!matched) return problems;
  for (const Group& group : groups(*matched, problems)) choose(*matched, group, problems);
  if (!problems.empty()) plan_.clear();
  return problems;
}

void FactorisePass::prepare(Module& root, const Shape& input) {
  std::string lines;
  for (const BlockProblem& problem : try_prepare(root, input)) lines += str(lines.empty() ? "" : "\n", problem.message);
  if (!lines.empty()) throw ConfigError(lines);
}

bool FactorisePass::matches(const std::string& path, const Module&) const { return plan_.find(path) != plan_.end(); }

std::unique_ptr<Module> FactorisePass::rewrite(const Module& module, LayerReport& report) const {
  const auto& [choice, asked] = plan_.at(module.path());
  report.format = config_.format;
  report.ranks_asked = asked;
  report.reason = choice.reason;
  if (!choice.ranks) return nullptr;
  const auto& dense = static_cast<const Conv2d&>(module);
  report.ranks = choice.ranks;
  report.decision = Decision::factored;
  if (factors_ == Factors::zeros) {
    TESSERA_CHECK(all_finite(dense.weight().value()), NumericError, "layer '", dense.path(), "': the weight contains NaN or Inf");
    return Tucker2Conv2d::shaped_for(dense, *choice.ranks);
  }
  auto factored = Tucker2Conv2d::from_dense(dense, *choice.ranks,
                                            {.max_iterations = config_.hooi.iterations, .tolerance = config_.hooi.tolerance});
  move_to(*factored, dense.weight().value().device());
  report.relative_error = linalg::relative_error(factored->dense_weight(), dense.weight().value());
  return factored;
}

}  // namespace tessera
