#include "tests/train/schema/key_contexts.h"

#include <algorithm>
#include <deque>
#include <string>

#include "train/experiment.h"

namespace tessera::testing {
namespace {

constexpr const char* kImages =
    "{data: {name: image-folder, root: '${TESSERA_TEST_FILES}/images', resize: 10, crop: 8, batch: 4, count: ~, test_count: ~}, "
    "model: {classes: 2}}";
constexpr const char* kBadImage =
    "{data: {name: image-folder, root: '${TESSERA_TEST_FILES}/bad', resize: 10, crop: 8, batch: 4, count: ~, test_count: ~}, "
    "model: {classes: 2}}";
constexpr const char* kLeftOut =
    "{data: {left_out: [{file: train/cat/1.png, bytes: 5, ends: d41d8cd98f00b204e9800998ecf8427e}]}}";
constexpr const char* kText =
    "{data: {name: text, files: ['${TESSERA_TEST_FILES}/text.txt'], split: [60, 20, 20], tokenizer: bytes, sequence: 8, batch: "
    "4, "
    "val: ~, count: ~, test_count: ~}, model: {hidden: ~, layers: 1, width: 12, heads: 3, vocabulary: 257}}";
constexpr const char* kMaskedText =
    "{data: {name: text, files: ['${TESSERA_TEST_FILES}/text.txt'], split: [60, 20, 20], tokenizer: bytes, sequence: 8, batch: "
    "4, "
    "task: masked-token, val: ~, count: ~, test_count: ~}, model: {hidden: ~, layers: 1, width: 12, heads: 3, vocabulary: 257}}";
constexpr const char* kTextData =
    "{data: {files: ['${TESSERA_TEST_FILES}/text.txt'], split: [60, 20, 20], tokenizer: bytes, sequence: 8, batch: 4, val: ~, "
    "count: ~, test_count: ~}, model: {name: gpt, hidden: ~, layers: 1, width: 12, heads: 3, vocabulary: 257}}";
constexpr const char* kFactorise =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 8, kernel: 3, stride: 4, name: conv1}}, relu, "
    "{conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}, "
    "stages: [{name: a, train: 1s, factorise: {layers: 'conv*', ranks: {macs: 0.5}, keep: always}}]}";
constexpr const char* kNormed =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 8, kernel: 3, stride: 4, name: conv1}}, batch_norm, "
    "{conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}}";
constexpr const char* kRankRules = "{stages: [{factorise: {ranks: [{layers: '*', out: 2, in: 1}, {layers: conv1, macs: 0.5}]}}]}";
// conv2 has 8 channels on both sides: 2 x 4 as two modes, 2 x 2 x 2 as three.
constexpr const char* kModes = "{stages: [{factorise: {layers: conv2, format: tt, modes: {count: 2}}}]}";
constexpr const char* kOutModes = "{stages: [{factorise: {layers: conv2, format: tt, modes: {count: ~, out: [2, 4]}}}]}";
constexpr const char* kInModes = "{stages: [{factorise: {layers: conv2, format: tt, modes: {count: ~, in: [2, 4]}}}]}";
constexpr const char* kTrainRanks =
    "{stages: [{factorise: {layers: conv2, format: tt, modes: {count: 3}, "
    "ranks: {macs: ~, r1: 2, r2: 2, r3: 2, r4: 2, r5: 2, r6: 2}}}]}";
constexpr const char* kTrainRules =
    "{stages: [{factorise: {layers: 'conv*', format: tt, modes: {count: 3}, ranks: [{out: ~, in: ~, energy: 0.9}, "
    "{layers: conv2, macs: ~, r1: 2, r2: 2, r3: 2, r4: 2, r5: 2, r6: 2}]}}]}";
constexpr const char* kConvolutions =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 8, kernel: 3, stride: 4, name: conv1}}, relu, "
    "{conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}, stages: [{train: 4s}]}";
constexpr const char* kPrune = "{stages: [{prune: {sparsity: {target: 0.5, every: 1s}}}]}";
constexpr const char* kPruneRules =
    "{stages: [{prune: {layers: '*', sparsity: {target: 0.5, every: 1s, targets: [{layers: conv2, target: 0.7}]}}}]}";
// conv2 has 32 channels on both sides, a multiple of the blocks' 16.
constexpr const char* kWide =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 32, kernel: 3, stride: 4, name: conv1}}, relu, "
    "{conv2d: {out: 32, kernel: 3, stride: 2, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}, "
    "stages: [{train: 4s, prune: {pattern: block, sparsity: {target: 0.5, every: 1s}}}]}";
constexpr const char* kPruneNOfM = "{stages: [{prune: {pattern: n_m}}]}";
constexpr const char* kPruneTiles = "{stages: [{prune: {pattern: tile, sparsity: {target: 0.5, every: 1s}}}]}";
constexpr const char* kPruneElements = "{stages: [{prune: {pattern: tile_element, sparsity: {target: 0.5, every: 1s}}}]}";
constexpr const char* kPruneAll = "{stages: [{prune: {layers: '*', sparsity: {target: 0.5, every: 1s}}}]}";
// A depthwise convolution after conv1. Both are pruned of the same channels.
constexpr const char* kPruneCoupled =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 8, kernel: 3, stride: 4, name: conv1}}, relu, "
    "{conv2d: {out: 8, kernel: 3, stride: 2, groups: 8, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}, stages: [{train: "
    "4s, prune: {layers: 'conv*', pattern: channel, coupled: true, sparsity: {target: 0.5, schedule: one_shot}}}]}";
constexpr const char* kRigl = "{stages: [{rigl: {sparsity: 0.5, every: 1s}}]}";
constexpr const char* kSparsify =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 8, kernel: 3, stride: 4, name: conv1}}, relu, "
    "{conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}, "
    "stages: [{name: a, train: 2s, prune: {layers: '*', sparsity: {target: 0.5, schedule: one_shot}}}, "
    "{name: b, train: 1s, sparsify: {keep: always}}]}";
constexpr const char* kTextNetwork =
    "{data: {name: text, files: ['${TESSERA_TEST_FILES}/text.txt'], split: [60, 20, 20], tokenizer: bytes, sequence: 8, batch: "
    "4, val: ~, count: ~, test_count: ~}, model: {name: gpt, hidden: ~, layers: 1, width: 12, heads: 3, vocabulary: 257}}";
constexpr const char* kFactoriseText =
    "{stages: [{factorise: {layers: 'blocks.*.mlp.*', format: svd, ranks: {macs: ~, rank: 3}, keep_for: {phase: decode}}}]}";
constexpr const char* kSparsifyText = "{stages: [{prune: {layers: 'blocks.*.mlp.*'}}, {sparsify: {keep_for: {phase: decode}}}]}";
constexpr const char* kShrink =
    "{model: {name: layers, hidden: ~, layers: [{conv2d: {out: 8, kernel: 3, stride: 4, name: conv1}}, relu, "
    "{conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}, global_avg_pool, {linear: {out: 10}}]}, "
    "stages: [{name: a, train: 2s, prune: {layers: 'conv*', pattern: channel, sparsity: {target: 0.5, schedule: one_shot}}}, "
    "{name: b, train: 1s, shrink: {keep: always}}]}";
using enum KeyContext::Refused;

// In a list, a path such as ranks[].out names the last item.
constexpr KeyContext kContexts[] = {
    {"name", "", "other"},
    {"deterministic", "{model: {name: resnet8, hidden: ~}, stages: [{train: 1s}]}"},  // large enough to be timed
    {"threads.compute", "", "2"},
    {"threads.loader", "", "1"},
    {"data.name", "", "image-folder",
     "{data: {root: '${TESSERA_TEST_FILES}/images', resize: 10, crop: 8, batch: 4, count: ~, test_count: ~}, model: {classes: "
     "2}}"},
    {"data.root", kImages, "'${TESSERA_TEST_FILES}/other'"},
    {"data.batch", "", "4"},
    {"data(glyphs).val", "", "0.5"},
    {"data(glyphs).count", "", "56"},
    {"data(glyphs).test_count", "", "12"},
    {"data(image-folder)", kImages},
    {"data(image-folder).val", "", "0.5"},
    {"data(image-folder).mean", "", "[0.5, 0.25, 0.5]"},
    {"data(image-folder).std", "", "[0.5, 0.25, 0.5]"},
    {"data(image-folder).train", "", "more"},
    {"data(image-folder).test", "", "more"},
    {"data(image-folder).resize", "", "12"},
    {"data(image-folder).crop", "", "6"},
    {"data(image-folder).on_bad_image", kBadImage, "skip", "", without},
    {"data(image-folder).left_out", "", "[{file: train/cat/1.png, bytes: 5, ends: d41d8cd98f00b204e9800998ecf8427e}]"},
    {"data(image-folder).left_out[].file", kLeftOut, "train/cat/2.png"},
    {"data(image-folder).left_out[].bytes", kLeftOut, "6"},
    {"data(image-folder).left_out[].ends", kLeftOut, "e41d8cd98f00b204e9800998ecf8427e"},
    {"data(text)", kTextData},
    {"data(text).files", "", "['${TESSERA_TEST_FILES}/text.txt', '${TESSERA_TEST_FILES}/vocab.txt']"},
    {"data(text).split", "", "[50, 25, 25]"},
    {"data(text).tokenizer", "", "{wordpiece: {vocab: '${TESSERA_TEST_FILES}/vocab.txt'}}"},
    {"data(text).sequence", "", "6"},
    {"model.name", "", "lenet5", "{model: {hidden: ~}}"},
    {"model.classes", "", "12", "", with},
    {"model.in_channels", "", "1"},
    {"model(mlp).hidden", "", "[5]"},
    {"model(resnet8)", "{model: {hidden: ~}}"},
    {"model(resnet8).shortcut", "", "projection"},
    {"model(mobilenet_v1)", "{model: {hidden: ~}}"},
    {"model(vit)", "{model: {hidden: ~, layers: 1, width: 12, heads: 3, patch: 14}}"},
    {"model(vit).width", "", "24"},
    {"model(vit).patch", "", "7"},
    {"model(vit).sparse", "", "{band: 1}"},
    {"model(vit).sparse.band", "", "2"},
    {"model(vit).sparse.density", "{model: {sparse: {band: 1}}}", "0.5"},
    {"model(vit).sparse.blocks", "{model: {sparse: {band: 1}}}", "16"},
    {"model(vit).eps", "", "1.0e-3"},
    {"model(gpt)", kText},
    {"model(gpt).width", "", "24"},
    {"model(gpt).kv_heads", "", "1"},
    {"model(gpt).vocabulary", "", "300"},
    {"model(gpt).rotary_base", "{model: {positions: rotary}}", "3"},
    {"model(gpt).window", "", "2"},
    {"model(gpt).sparse", "{model: {length: 8}}", "{band: 1}"},
    {"model(gpt).sparse.band", "", "2"},
    {"model(gpt).sparse.density", "{model: {sparse: {band: 1}}}", "0.5"},
    {"model(gpt).sparse.blocks", "{model: {sparse: {band: 1}}}", "16"},
    {"model(gpt).eps", "", "1.0e-3"},
    {"model(bert)", kMaskedText},
    {"model(bert).width", "", "24"},
    {"model(bert).vocabulary", "", "300"},
    {"model(bert).sparse", "{model: {length: 8}}", "{band: 1}"},
    {"model(bert).sparse.band", "", "2"},
    {"model(bert).sparse.density", "{model: {sparse: {band: 1}}}", "0.5"},
    {"model(bert).sparse.blocks", "{model: {sparse: {band: 1}}}", "16"},
    {"model(bert).eps", "", "1.0e-3"},
    {"model(layers).layers", "{model: {name: layers, hidden: ~, layers: [flatten, {linear: {out: 10}}]}}",
     "[flatten, {linear: {out: 4}}, relu, {linear: {out: 10}}]"},
    {"model.weights", "", "'${TESSERA_TEST_FILES}/weights.safetensors'"},
    {"model.head", "{model: {weights: '${TESSERA_TEST_FILES}/weights.safetensors'}}"},
    {"model.allow_nonfinite", "{model: {weights: '${TESSERA_TEST_FILES}/nonfinite.safetensors'}}", "", "", without},
    {"optimizer(sgd).decay_norm_bias", "{optimizer: {name: sgd, weight_decay: 0.1}}"},
    {"schedule(step).gamma", "{schedule: {name: step, every: 1s}}"},
    {"schedule(step).every", "{schedule: {name: step, every: 1s}}", "2s"},
    {"schedule(step).milestones", "{schedule: {name: step, milestones: [1s]}}", "[2s]"},
    {"schedule(step).warmup", "{schedule: {name: step, every: 2s}}"},
    {"clip_norm", "", "0.01"},
    {"micro_batch", "", "4"},
    {"recompute",
     "{model: {name: layers, hidden: ~, layers: [flatten, {svd_linear: {out: 40, rank: 20}}, relu, {linear: {out: 10}}]}}"},
    {"stages[].name", "", "other"},
    {"stages[].train", "", "2s"},
    {"stages[].factorise", kFactorise},
    {"stages[].factorise.layers", "", "conv2"},
    {"stages[].factorise.format", "{stages: [{factorise: {layers: '*', ranks: {macs: ~, energy: 0.5}}}]}", "svd"},
    {"stages[].factorise.ranks.rank", "{stages: [{factorise: {format: svd, layers: '*', ranks: {macs: ~, rank: 3}}}]}", "2"},
    {"stages[].factorise.ranks.out", "{stages: [{factorise: {ranks: {macs: ~, out: 3, in: 1}}}]}", "2"},
    {"stages[].factorise.ranks.in", "{stages: [{factorise: {layers: conv2, ranks: {macs: ~, out: 3, in: 3}}}]}", "2"},
    {"stages[].factorise.ranks.r1", kTrainRanks, "1"},
    {"stages[].factorise.ranks.r2", kTrainRanks, "1"},
    {"stages[].factorise.ranks.r3", kTrainRanks, "1"},
    {"stages[].factorise.ranks.r4", kTrainRanks, "1"},
    {"stages[].factorise.ranks.r5", kTrainRanks, "1"},
    {"stages[].factorise.ranks.r6", kTrainRanks, "1"},
    {"stages[].factorise.ranks.params", "{stages: [{factorise: {ranks: {macs: ~, params: 0.6}}}]}"},
    {"stages[].factorise.ranks.macs", "", "0.3"},
    {"stages[].factorise.ranks.energy", "{stages: [{factorise: {ranks: {macs: ~, energy: 0.5}}}]}"},
    {"stages[].factorise.ranks.error", "{stages: [{factorise: {ranks: {macs: ~, error: 0.9}}}]}", "0.7"},
    {"stages[].factorise.ranks.latency",
     "{deterministic: false, stages: [{factorise: {ranks: {macs: ~, latency: {speedup: 2}}}}]}", "{speedup: 3}"},
    {"stages[].factorise.ranks.latency.speedup",
     "{deterministic: false, stages: [{factorise: {ranks: {macs: ~, latency: {speedup: 2}}}}]}", "3"},
    {"stages[].factorise.ranks.vbmf", "{stages: [{factorise: {ranks: {macs: ~, vbmf: 1}}}]}", "0.6"},
    {"stages[].factorise.ranks.multiple_of", "{stages: [{factorise: {ranks: {macs: 0.9}}}]}", "4"},
    {"stages[].factorise.ranks[]", kRankRules},
    {"stages[].factorise.ranks[].layers", "", "conv2"},
    {"stages[].factorise.ranks[].out", "{stages: [{factorise: {ranks: [{}, {macs: ~, out: 3, in: 1}]}}]}", "2"},
    {"stages[].factorise.ranks[].in", "{stages: [{factorise: {ranks: [{}, {layers: conv2, macs: ~, out: 3, in: 3}]}}]}", "2"},
    {"stages[].factorise.ranks[].rank",
     "{stages: [{factorise: {format: svd, layers: '*', ranks: [{out: ~, in: ~, energy: 0.9}, {layers: '4', macs: ~, rank: "
     "3}]}}]}",
     "2"},
    {"stages[].factorise.ranks[].r1", kTrainRules, "1"},
    {"stages[].factorise.ranks[].r2", kTrainRules, "1"},
    {"stages[].factorise.ranks[].r3", kTrainRules, "1"},
    {"stages[].factorise.ranks[].r4", kTrainRules, "1"},
    {"stages[].factorise.ranks[].r5", kTrainRules, "1"},
    {"stages[].factorise.ranks[].r6", kTrainRules, "1"},
    {"stages[].factorise.ranks[].params", "{stages: [{factorise: {ranks: [{}, {macs: ~, params: 0.8}]}}]}", "0.5"},
    {"stages[].factorise.ranks[].macs", "", "0.8"},
    {"stages[].factorise.ranks[].energy", "{stages: [{factorise: {ranks: [{}, {macs: ~, energy: 0.5}]}}]}"},
    {"stages[].factorise.ranks[].error", "{stages: [{factorise: {ranks: [{}, {layers: conv2, macs: ~, error: 0.9}]}}]}", "0.7"},
    {"stages[].factorise.ranks[].vbmf", "{stages: [{factorise: {ranks: [{}, {layers: conv2, macs: ~, vbmf: 1}]}}]}", "0.6"},
    {"stages[].factorise.ranks[].multiple_of", "{stages: [{factorise: {ranks: [{}, {layers: conv2, macs: 0.9}]}}]}", "4"},
    // The layers are too small for compression to make them faster.
    {"stages[].factorise.keep", "{deterministic: false, stages: [{factorise: {keep: faster}}]}", "always"},
    {"stages[].factorise.keep_for", "{deterministic: false}"},
    {"stages[].factorise.keep_for.batch", "", "3"},
    {"stages[].factorise.keep_for.length", kTextNetwork},
    {"stages[].factorise.keep_for.length", kFactoriseText, "5"},
    {"stages[].factorise.singular_vectors", "{stages: [{factorise: {format: svd, layers: '*', ranks: {macs: ~, rank: 3}}}]}"},
    {"stages[].factorise.recalibrate", kNormed, "3"},
    {"stages[].factorise.modes", kModes},
    {"stages[].factorise.modes.count", kModes, "3"},
    {"stages[].factorise.modes.out", kOutModes, "[4, 2]"},
    {"stages[].factorise.modes.in", kInModes, "[4, 2]"},
    {"stages[].factorise.decomposition.iterations", "", "0"},
    {"stages[].factorise.decomposition.tolerance", "", "1"},
    {"stages[].factorise.from",
     "{stages: [{name: admm, train: 1e, factorise: ~, admm: {layers: conv2, ranks: {macs: 0.5}, keep: always}}, "
     "{name: b, factorise: {layers: 'conv*', ranks: {macs: 0.5}, keep: always}}]}",
     "", "{stages: [{}, {factorise: {layers: ~, ranks: ~, keep: ~}}]}", none, "layers ranks"},
    {"stages[].admm", "{stages: [{train: 1e, admm: {rho: 1}}]}"},
    {"stages[].admm.sparsity", "{stages: [{admm: {layers: conv2, rho: 1, update: 1s}}]}", "",
     "{stages: [{admm: {ranks: ~, keep: ~}}]}", none, "ranks"},
    {"stages[].admm.rho_end", "{stages: [{admm: {update: 1s}}]}"},
    {"stages[].admm.balance", "{stages: [{admm: {update: 1s}}]}"},
    {"stages[].admm.balance.ratio", "{stages: [{admm: {rho: 0.001}}]}", "1.0e+12"},
    {"stages[].admm.balance.factor", "{stages: [{admm: {rho: 0.001}}]}", "1.5"},
    {"stages[].admm.update", "", "2s"},
    {"stages[].prune", kConvolutions},
    {"stages[].prune.layers", kPrune, "'*'"},
    {"stages[].prune.pattern", kPrune, "channel"},
    {"stages[].prune.block", kWide, "[8, 4]"},
    {"stages[].prune.n_m", kPruneNOfM, "'1:4'"},
    {"stages[].prune.group", kPruneTiles, "3"},
    {"stages[].prune.extra", kPruneElements, "0.2"},
    {"stages[].prune.coupled", kPruneCoupled, "false"},
    {"stages[].prune.scope", kPruneAll, "global"},
    {"stages[].prune.score", kPrune, "random"},
    {"stages[].prune.score_batches", "{stages: [{prune: {score: taylor, sparsity: {target: 0.5, every: 1s}}}]}", "1"},
    {"stages[].prune.sr_ste", "{stages: [{prune: {pattern: n_m, sr_ste: {lambda: 0.1}}}]}"},
    {"stages[].prune.sr_ste.lambda", "", "1"},
    {"stages[].prune.sr_ste.freeze", "", "1s"},
    {"stages[].prune.sparsity", kPrune, "{target: 0.7}"},
    {"stages[].prune.sparsity.target", kPrune, "0.7"},
    {"stages[].prune.sparsity.targets", kPruneRules},
    {"stages[].prune.sparsity.targets[].layers", "", "conv1"},
    {"stages[].prune.sparsity.targets[].target", "", "0.9"},
    {"stages[].prune.sparsity.schedule", kPrune, "iterative"},
    {"stages[].prune.sparsity.begin", kPrune, "1s"},
    {"stages[].prune.sparsity.end", kPrune, "2s"},
    {"stages[].prune.sparsity.every", kPrune, "2s"},
    {"stages[].shrink", kShrink},
    {"stages[].shrink.keep", "{deterministic: false, stages: [{}, {shrink: {keep: faster}}]}", "always"},
    {"stages[].shrink.keep_for", "{deterministic: false}"},
    {"stages[].shrink.keep_for.batch", "", "3"},
    {"stages[].rigl", kConvolutions},
    {"ema.decay", "{ema: {warmup: false}}"},
    {"ema.statistics", kNormed},
    {"stages[].rigl.layers", kRigl, "'*'"},
    {"stages[].rigl.sparsity", kRigl, "0.7"},
    {"stages[].rigl.scope", "{stages: [{rigl: {layers: '*', sparsity: 0.5, every: 1s}}]}", "layer"},
    {"stages[].rigl.every", kRigl, "2s"},
    {"stages[].rigl.end", kRigl, "2s"},
    {"stages[].rigl.fraction", kRigl, "1"},
    {"stages[].sparsify", kSparsify},
    {"stages[].sparsify.layers", "", "conv2"},
    {"stages[].sparsify.keep", "{deterministic: false, stages: [{}, {sparsify: {keep: faster}}]}", "always"},
    {"stages[].sparsify.keep_for", "{deterministic: false}"},
    {"stages[].sparsify.keep_for.batch", "", "3"},
    {"stages[].sparsify.keep_for.length", kTextNetwork},
    {"stages[].sparsify.keep_for.length", kSparsifyText, "5"},
    {"stages[].distill", "{stages: [{name: a, train: 1s}, {name: b, train: 1e}]}"},
    {"stages[].distill.from",
     "{stages: [{name: pretrain, train: 1s}, {name: b, train: 1s}, {name: c, train: 1e, distill: {from: b}}]}"},
    {"stages[].distill.temperature", "{stages: [{name: a, train: 1s}, {name: b, train: 1e, distill: {temperature: 4}}]}"},
    {"stages[].distill.weight", "{stages: [{name: a, train: 1s}, {name: b, train: 1e, distill: {weight: 0.5}}]}"},
    {"checkpoint.every", "", "2s"},
    {"checkpoint.keep", "{checkpoint: {every: 1s}}", "1"},
    {"checkpoint.best", "{checkpoint: {every: 100e}, stages: [{train: 3e}]}"},
    {"checkpoint.keep_best",
     "{checkpoint: {keep: 1}, optimizer: {name: sgd, lr: 0}, stages: [{name: a, train: 3e}, {name: b, train: 3e}]}"},
    {"report.decode", kTextNetwork},
    {"report.decode.batch", "", "[2]"},
    {"log_every", "", "2"},
};

bool is_in(std::string_view path, std::string_view block) {
  return path.starts_with(block) &&
         (path.size() == block.size() || std::string_view(".[(").find(path[block.size()]) != std::string_view::npos);
}

// The keys that `factorise` and `admm` share have the same contexts in both.
constexpr std::string_view kFactoriseKeys = "stages[].factorise";
constexpr std::string_view kFactoriseAlone[] = {"stages[].factorise.from", "stages[].factorise.singular_vectors",
                                                "stages[].factorise.weighted", "stages[].factorise.recalibrate"};

bool is_in_any(std::string_view path, std::span<const std::string_view> blocks) {
  return std::ranges::any_of(blocks, [&](std::string_view block) { return is_in(path, block); });
}

// The texts live as long as the program, because contexts are views.
std::string_view in_admm(std::string_view text) {
  static std::deque<std::string> kept;
  std::string& made = kept.emplace_back(text);
  constexpr std::string_view kFrom = "factorise", kTo = "admm";
  for (std::size_t at = 0; (at = made.find(kFrom, at)) != std::string::npos;) made.replace(at, kFrom.size(), kTo);
  return made;
}

KeyContext for_admm(const KeyContext& row) {
  KeyContext made = row;
  for (std::string_view KeyContext::*text : {&KeyContext::path, &KeyContext::context, &KeyContext::along}) {
    made.*text = in_admm(row.*text);
  }
  return made;
}

}  // namespace

std::string_view base_experiment() {
  return "version: 1\n"
         "name: base\n"
         "deterministic: true\n"
         "threads: {compute: 1, loader: 0}\n"
         "data: {name: glyphs, count: 48, test_count: 8, batch: 8, val: 0.25}\n"
         "model: {name: mlp, hidden: [6]}\n"
         "stages: [{name: a, train: 1e}]\n"
         "report: {latency: {batch: [1], repeats: 5}}\n"
         "log_every: 1\n";
}

std::span<const KeyContext> all_contexts() {
  static const std::vector<KeyContext> all = [] {
    std::vector<KeyContext> made;
    for (const KeyContext& row : kContexts) {
      if (is_in(row.path, kFactoriseKeys) && !is_in_any(row.path, kFactoriseAlone)) made.push_back(for_admm(row));
    }
    made.insert(made.end(), std::begin(kContexts), std::end(kContexts));
    return made;
  }();
  return all;
}

std::string_view shared_path(std::string_view path) {
  constexpr std::string_view kStage = "stages[].";
  if (!path.starts_with(kStage)) return path;
  const std::string_view inner = path.substr(kStage.size());
  const bool shared = std::ranges::any_of(training_keys(), [&](std::string_view key) { return is_in(inner, key); });
  return shared ? inner : path;
}

std::vector<const KeyContext*> contexts_of(std::string_view path) {
  std::vector<const KeyContext*> rows;
  for (const KeyContext& row : all_contexts()) {
    if (is_in(shared_path(path), row.path)) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, {}, [](const KeyContext* row) { return row->path.size(); });
  return rows;
}

}  // namespace tessera::testing
