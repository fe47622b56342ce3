#include "layers/models/model.h"

#include "core/config/suggest.h"
#include "core/support/error.h"

namespace tessera {

namespace {

constexpr std::int64_t kClasses = 10;

template <class Form>
concept AnswersTokens = requires(const Form& form) {
  form.vocabulary;
};

bool answers_tokens(const ModelForm& form) {
  return std::visit([]<class Form>(const Form&) { return AnswersTokens<Form>; }, form);
}

[[noreturn]] void throw_unknown(std::string_view name) {
  std::string message = str("unknown model '", name, "'");
  for (const std::string& near : nearest_names(name, model_names())) message += str("; did you mean '", near, "'?");
  message += "; known:";
  for (const std::string_view known : model_names()) message += str(' ', known);
  throw ConfigError(message);
}

void add_shared_keys(Fields& f, ModelConfig& config) {
  f.add("classes", config.classes,
        {.help = "outputs of the last layer, 10 without it; a list's own last layer decides for name: layers, the weights' for "
                 "name: saved; not for gpt and bert, where the vocabulary decides",
         .range = at_least(1),
         .example = "100",
         .observable = "plan"});
  f.add("in_channels", config.in_channels,
        {.help = "channels the images must have; another number is an error",
         .range = at_least(1),
         .example = "3",
         .observable = "none: it is checked against the images"});
  f.add("weights", config.weights,
        {.help = "start from a trained network: a .safetensors file or a run folder, relative to this file; see name: saved",
         .example = "resnet18.safetensors",
         .observable = "bytes"});
  f.add("head", config.head,
        {.help = "with weights: keep takes every layer from them, reset draws the last one anew",
         .choices = {"keep", "reset"},
         .observable = "bytes"});
  f.add("allow_nonfinite", config.allow_nonfinite,
        {.help = "with weights: take NaN and Inf as they are instead of refusing them", .observable = "plan"});
}

}  // namespace

ModelConfig named_model(std::string_view name, std::optional<std::int64_t> classes) {
  ModelConfig config{.classes = classes};
  if (!set_form(config.form, name)) throw_unknown(name);
  return config;
}

std::vector<std::string_view> model_names() { return all_form_names(ModelForm()); }

std::optional<Shape> usual_input(const ModelConfig& config) {
  return std::visit([](const auto& form) { return form.usual_input(); }, config.form);
}

void ModelConfig::fields(Fields& f) {
  f.choose("name", form, {.help = "the network; saved: as the weights have it", .example = "resnet20", .observable = "plan"},
           [this](Fields& inner) { add_shared_keys(inner, *this); });
  f.require(!weights.empty() || name() != kSavedModel, "weights", "name: saved needs the weights that hold the network");
  f.require(!in_channels || name() != kSavedModel, "in_channels", "the weights of name: saved say it");
  f.require(!in_channels || !answers_tokens(form), "in_channels", str(name(), " reads tokens, which have no channels"));
  f.require(!classes || !answers_tokens(form), "classes", str("the vocabulary decides what ", name(), " answers"));
  if (!classes && !answers_tokens(form)) classes = kClasses;  // so that resolved experiments state the number
  f.require(head == "keep" || !weights.empty(), "head", "reset needs weights; without them every layer is drawn");
  f.require(!allow_nonfinite || !weights.empty(), "allow_nonfinite", "needs weights");
}

std::unique_ptr<Module> build_model(const ModelConfig& config, const Shape& input) {
  TESSERA_CHECK(!config.in_channels || (input.rank() > 1 && input.dim(-1) == *config.in_channels), ConfigError, "model ",
                config.name(), ": in_channels is ", *config.in_channels, ", the data is ", input, "; the last axis must agree");
  TESSERA_CHECK(!config.classes || !answers_tokens(config.form), ConfigError, "model ", config.name(), ": classes is ",
                *config.classes, "; the vocabulary decides");
  const auto build = [&]<class Form>(const Form& form) {
    if constexpr (AnswersTokens<Form>) {
      return form.build(input);
    } else {
      return form.build(input, config.classes.value_or(kClasses));
    }
  };
  std::unique_ptr<Module> network = std::visit(build, config.form);
  for_each_module(*network, &Module::check_placed);
  return network;
}

std::unique_ptr<Module> models::Saved::build(const Shape&, std::int64_t) const {
  throw ConfigError(str("model ", kName, ": its structure is read with its weights"));
}

}  // namespace tessera
