// generate: text from a saved network that predicts the next token.
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/running.h"
#include "cli/verbs.h"
#include "core/support/text.h"
#include "train/generate/generate_run.h"

namespace tessera::cli {
namespace {

struct GenerateArguments {
  std::string run;
  std::int64_t seed = 0;
  GenerateRunOptions options;
};

int generate(GenerateArguments arguments) {
  arguments.options.text.seed = static_cast<std::uint64_t>(arguments.seed);
  install_stop_signals();
  try {
    const Generated made = generate_from_run(real_vfs(), RunFolder::open(real_vfs(), arguments.run), arguments.options,
                                             StopRequest(), [](std::string_view text) { std::cout << text << std::flush; });
    std::cout << '\n' << std::flush;
    const double rate = static_cast<double>(made.tokens) / std::max(made.seconds, 1e-9);
    std::cerr << made.tokens << " tokens behind " << made.prompt_tokens << " of the prompt in " << formatted("%.1f", made.seconds)
              << " s, " << formatted("%.1f", rate) << " a second" << (made.ended ? "; the text has ended" : "") << '\n';
    return kDone;
  } catch (const Stopped&) {
    std::cout << '\n';
    return kStopped;
  }
}

}  // namespace

void add_generate(Verb program) {
  const Verb verb = program.add("generate", "Write text with a saved network that predicts the next token");
  auto arguments = std::make_shared<GenerateArguments>();
  GenerateOptions& text = arguments->options.text;
  verb.argument("run", arguments->run, "run folder, runs/<name>/<n>").required();
  verb.argument("overrides", arguments->options.overrides, "key=value of threads.compute, device, precision");
  verb.argument("--prompt", text.prompt, "what the text follows; may be empty where the tokenizer has an end of text");
  verb.argument("--tokens", text.tokens, "tokens to write at most; an end of text ends it sooner");
  verb.argument("--temperature", text.sampling.temperature, "scores are divided by it; 0 takes the likeliest token each time");
  verb.argument("--top-k", text.sampling.top_k, "only the k likeliest tokens; 0: all");
  verb.argument("--top-p", text.sampling.top_p, "only the fewest likeliest tokens whose probabilities sum to p; 1: all");
  verb.argument("--seed", arguments->seed, "of the draws: the same seed gives the same text");
  verb.argument(
      "--at", arguments->options.at,
      "stage name (its last checkpoint), global step, or best (by the validation metric); default: the newest checkpoint");
  verb.footer(
      "The text goes to standard output as it comes, what it took to standard error.\n"
      "Examples: tessera generate runs/gpt/1 --prompt \"To be\" --tokens 100\n"
      "          tessera generate runs/gpt/1 --prompt \"To be\" --temperature 0.8 --top-k 40 --seed 3");
  verb.runs([arguments] { return generate(*arguments); });
}

}  // namespace tessera::cli
