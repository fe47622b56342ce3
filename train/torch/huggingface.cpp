#include "train/torch/huggingface.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/support/error.h"

namespace tessera {
namespace {

// A star stands for the number of a block. `theirs` are the parts of our tensor, from its first row on. A row names one tensor,
// or a layer that has a weight with these axes and perhaps a bias.
struct Row {
  std::string_view ours;
  std::array<std::string_view, 3> theirs;
  TorchAxes axes = TorchAxes::same;
};

constexpr Row kGpt2[] = {
    {"tokens", {"transformer.wte"}},
    {"positions", {"transformer.wpe"}},
    {"blocks.*.norm1", {"transformer.h.*.ln_1"}},
    {"blocks.*.attn.qkv", {"transformer.h.*.attn.c_attn"}, TorchAxes::transposed},
    {"blocks.*.attn.out", {"transformer.h.*.attn.c_proj"}, TorchAxes::transposed},
    {"blocks.*.norm2", {"transformer.h.*.ln_2"}},
    {"blocks.*.mlp.fc1", {"transformer.h.*.mlp.c_fc"}, TorchAxes::transposed},
    {"blocks.*.mlp.fc2", {"transformer.h.*.mlp.c_proj"}, TorchAxes::transposed},
    {"norm", {"transformer.ln_f"}},
    {"head.weight", {"lm_head.weight"}},
};

constexpr Row kLlama[] = {
    {"tokens", {"model.embed_tokens"}},
    {"blocks.*.norm1", {"model.layers.*.input_layernorm"}},
    {"blocks.*.attn.qkv",
     {"model.layers.*.self_attn.q_proj", "model.layers.*.self_attn.k_proj", "model.layers.*.self_attn.v_proj"}},
    {"blocks.*.attn.out", {"model.layers.*.self_attn.o_proj"}},
    {"blocks.*.norm2", {"model.layers.*.post_attention_layernorm"}},
    {"blocks.*.mlp.fc1", {"model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"}},
    {"blocks.*.mlp.fc2", {"model.layers.*.mlp.down_proj"}},
    {"norm", {"model.norm"}},
    {"head.weight", {"lm_head.weight"}},
};

constexpr Row kBert[] = {
    {"tokens", {"bert.embeddings.word_embeddings"}},
    {"positions", {"bert.embeddings.position_embeddings"}},
    {"segments", {"bert.embeddings.token_type_embeddings"}},
    {"norm", {"bert.embeddings.LayerNorm"}},
    {"blocks.*.attn.qkv",
     {"bert.encoder.layer.*.attention.self.query", "bert.encoder.layer.*.attention.self.key",
      "bert.encoder.layer.*.attention.self.value"}},
    {"blocks.*.attn.out", {"bert.encoder.layer.*.attention.output.dense"}},
    {"blocks.*.norm1", {"bert.encoder.layer.*.attention.output.LayerNorm"}},
    {"blocks.*.mlp.fc1", {"bert.encoder.layer.*.intermediate.dense"}},
    {"blocks.*.mlp.fc2", {"bert.encoder.layer.*.output.dense"}},
    {"blocks.*.norm2", {"bert.encoder.layer.*.output.LayerNorm"}},
    {"head.transform", {"cls.predictions.transform.dense"}},
    {"head.norm", {"cls.predictions.transform.LayerNorm"}},
    {"head.output.bias", {"cls.predictions.bias"}},
};

constexpr Row kVit[] = {
    {"patches.conv", {"vit.embeddings.patch_embeddings.projection"}, TorchAxes::convolution},
    {"class_token.weight", {"vit.embeddings.cls_token"}, TorchAxes::three},
    {"positions.weight", {"vit.embeddings.position_embeddings"}, TorchAxes::three},
    {"blocks.*.norm1", {"vit.encoder.layer.*.layernorm_before"}},
    {"blocks.*.attn.qkv",
     {"vit.encoder.layer.*.attention.attention.query", "vit.encoder.layer.*.attention.attention.key",
      "vit.encoder.layer.*.attention.attention.value"}},
    {"blocks.*.attn.out", {"vit.encoder.layer.*.attention.output.dense"}},
    {"blocks.*.norm2", {"vit.encoder.layer.*.layernorm_after"}},
    {"blocks.*.mlp.fc1", {"vit.encoder.layer.*.intermediate.dense"}},
    {"blocks.*.mlp.fc2", {"vit.encoder.layer.*.output.dense"}},
    {"norm", {"vit.layernorm"}},
    {"head", {"classifier"}},
};

constexpr std::string_view kGpt2Ignored[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};
constexpr std::string_view kLlamaIgnored[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};
constexpr std::string_view kBertIgnored[] = {"bert.embeddings.position_ids", "bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                             "cls.seq_relationship.weight", "cls.seq_relationship.bias"};
constexpr std::string_view kVitIgnored[] = {"vit.pooler.dense.weight", "vit.pooler.dense.bias"};

struct Repeat {
  std::string_view name;
  std::string_view of;
};
constexpr Repeat kGpt2Repeats[] = {{"lm_head.weight", "transformer.wte.weight"}};
constexpr Repeat kLlamaRepeats[] = {{"lm_head.weight", "model.embed_tokens.weight"}};
constexpr Repeat kBertRepeats[] = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                                   {"cls.predictions.decoder.bias", "cls.predictions.bias"}};

struct Family {
  std::string_view type;
  std::string_view prefix;
  std::string_view sign;  // a tensor that every file of the family has
  std::span<const Row> rows;
  std::span<const std::string_view> ignored;
  std::span<const Repeat> repeats;
};

constexpr Family kFamilies[] = {
    {"bert", "bert.", "bert.embeddings.word_embeddings.weight", kBert, kBertIgnored, kBertRepeats},
    {"gpt2", "transformer.", "transformer.wte.weight", kGpt2, kGpt2Ignored, kGpt2Repeats},
    {"llama", "model.", "model.embed_tokens.weight", kLlama, kLlamaIgnored, kLlamaRepeats},
    {"vit", "vit.", "vit.embeddings.patch_embeddings.projection.weight", kVit, kVitIgnored, {}},
};

const Family& family_of(std::string_view type) {
  const auto* const found = std::ranges::find(kFamilies, type, &Family::type);
  TESSERA_CHECK(found != std::end(kFamilies), InternalError, "huggingface: no names of '", type, "'");
  return *found;
}

// The digits that the pattern's star stands for; "" for a pattern without a star; nothing if the text does not match.
std::optional<std::string_view> match(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view behind = pattern.substr(star + 1);
  if (text.size() < pattern.size() || !text.starts_with(pattern.substr(0, star)) || !text.ends_with(behind)) return std::nullopt;
  const std::string_view number = text.substr(star, text.size() - star - behind.size());
  const bool digits = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return digits ? std::optional(number) : std::nullopt;
}

std::string filled(std::string_view pattern, std::string_view number) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return str(pattern.substr(0, star), number, pattern.substr(star + 1));
}

class Layout {
 public:
  Layout(const HuggingFaceNames& names, const std::map<std::string, Shape>& ours)
      : names_(names), family_(family_of(names.type)), ours_(ours) {}

  std::vector<TorchTensor> tensors() {
    std::string nameless;
    for (const auto& [path, shape] : ours_) {
      if (!add(path, shape)) nameless += str(nameless.empty() ? "" : ", ", path, ' ', shape);
    }
    TESSERA_CHECK(nameless.empty(), ConfigError, "no names among those of Hugging Face's ", names_.type, " for ", nameless);
    return std::move(tensors_);
  }

  // The name as the file spells it.
  std::string spelled(std::string name) const {
    if (!names_.prefix && name.starts_with(family_.prefix)) name.erase(0, family_.prefix.size());
    if (names_.gamma && name.ends_with(".LayerNorm.weight")) return name.substr(0, name.size() - 6) + "gamma";
    if (names_.gamma && name.ends_with(".LayerNorm.bias")) return name.substr(0, name.size() - 4) + "beta";
    return name;
  }

 private:
  bool add(const std::string& path, const Shape& shape) {
    const std::size_t dot = path.rfind('.');
    const std::string_view layer = std::string_view(path).substr(0, dot == std::string::npos ? 0 : dot);
    const std::string_view leaf = std::string_view(path).substr(layer.size());  // ".weight"
    for (const Row& row : family_.rows) {
      if (const auto number = match(row.ours, path)) return add_parts({path, shape}, row, *number, "");
      if (leaf != ".weight" && leaf != ".bias") continue;
      if (const auto number = match(row.ours, layer)) return add_parts({path, shape}, row, *number, leaf);
    }
    return false;
  }

  struct Ours {
    const std::string& path;
    const Shape& shape;
  };
  bool add_parts(const Ours& ours, const Row& row, std::string_view number, std::string_view leaf) {
    const std::vector<std::int64_t> rows = rows_of_parts(ours, row);
    TorchTensor tensor{ours.path, "", leaf == ".bias" ? TorchAxes::same : row.axes};
    for (std::size_t part = 0; part < rows.size(); ++part) {
      tensor.name = spelled(filled(row.theirs[part], number) + std::string(leaf));
      tensor.rows = rows[part];
      tensors_.push_back(tensor);
      tensor.first += tensor.rows;
    }
    return !rows.empty();
  }

  // The number of rows of each part. {0} for a single part, which is the whole; empty if the parts do not make up the whole.
  std::vector<std::int64_t> rows_of_parts(const Ours& ours, const Row& row) const {
    if (row.theirs[1].empty()) return {0};
    const std::int64_t all = ours.shape.rank() == 0 ? 0 : ours.shape[0];
    const bool three = !row.theirs[2].empty();
    const std::int64_t first = three ? width_of_queries(ours.path) : all / 2;
    const std::int64_t rest = all - first;
    if (first < 1 || rest < 1 || (three && rest % 2 != 0) || (!three && rest != first)) return {};
    return three ? std::vector<std::int64_t>{first, rest / 2, rest / 2} : std::vector<std::int64_t>{first, rest};
  }

  // Queries are as wide as the input of the output projection. Keys and values share the rest.
  std::int64_t width_of_queries(const std::string& qkv) const {
    const std::size_t at = qkv.find("qkv.");
    if (at == std::string::npos) return 0;
    const auto out = ours_.find(qkv.substr(0, at) + "out.weight");
    return out == ours_.end() || out->second.rank() != 2 ? 0 : out->second[1];
  }

  const HuggingFaceNames& names_;
  const Family& family_;
  const std::map<std::string, Shape>& ours_;
  std::vector<TorchTensor> tensors_;
};

}  // namespace

std::optional<HuggingFaceNames> huggingface_names(const std::map<std::string, Tensor>& file) {
  for (const Family& family : kFamilies) {
    const bool prefix = file.contains(std::string(family.sign));
    if (!prefix && !file.contains(std::string(family.sign.substr(family.prefix.size())))) continue;
    const bool gamma = std::ranges::any_of(file, [](const auto& entry) { return entry.first.ends_with(".LayerNorm.gamma"); });
    return HuggingFaceNames{family.type, prefix, gamma};
  }
  return std::nullopt;
}

FileLayout huggingface_layout(const HuggingFaceNames& names, const std::map<std::string, Shape>& ours) {
  const Family& family = family_of(names.type);
  Layout layout(names, ours);
  FileLayout result{.title = str("Hugging Face's names of ", names.type), .tensors = layout.tensors()};
  for (const Repeat& repeat : family.repeats) {
    result.repeats[layout.spelled(std::string(repeat.name))] = layout.spelled(std::string(repeat.of));
  }
  std::vector<std::string> ignored;
  for (const std::string_view pattern : family.ignored) ignored.push_back(layout.spelled(std::string(pattern)));
  result.ignores = [ignored](const std::string& name) {
    return std::ranges::any_of(ignored, [&](const std::string& pattern) { return match(pattern, name).has_value(); });
  };
  result.ignored = "buffers and other heads";
  return result;
}

}  // namespace tessera
