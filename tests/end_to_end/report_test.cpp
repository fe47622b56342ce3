// report: the page of a run that trained, was held to low rank, factorised, tuned and pruned; of two runs, of text, of a table,
// of a run without logs, of damaged runs, and of a running one.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/reported_run.h"
#include "tests/end_to_end/small_text.h"
#include "tests/support/python.h"
#include "train/report/html/run_files.h"

namespace tessera::testing {
namespace {

const std::string kTable = std::string(TESSERA_PAGES) + "/../../configs/tables/results/admm_resnet8.json";

namespace fs = std::filesystem;

class Report : public ReportedRun {
 protected:
  // The counts of elements that tests/end_to_end/check_page.py finds in the newest page.
  static Value checked() {
    const std::string told =
        output_of("python3 " + (fs::path(TESSERA_PAGES) / "check_page.py").string() + " " + (*folder_ / "page.html"));
    EXPECT_TRUE(told.starts_with("{")) << told;
    return told.starts_with("{") ? parse_json(told, "check_page.py") : Value::map();
  }
  static std::string metrics() { return read_bytes(run() + "/metrics.jsonl"); }
  // The last logged value of a key in a stage, as the page's description states it.
  static std::string logged(const std::string& run, const std::string& stage, const std::string& key) {
    std::string last;
    for (const std::string& line : split(read_bytes(run + "/metrics.jsonl"), '\n')) {
      const Value row = line.empty() ? Value::map() : parse_json(line, "metrics.jsonl");
      const Value* const value = row.find(key);
      if (value != nullptr && row.at("stage").as_string() == stage) last = formatted("%.4g", value->as_double());
    }
    return last;
  }
};

TEST_F(Report, ARunIsAPageThatNeedsNothingElse) {
  const std::string text = page({run()});
  const Value counts = checked();
  for (const char* const title :
       {"Training loss", "Loss on val", "Learning rate", "ADMM: rho", "ADMM: primal residual", "ADMM: dual residual",
        "ADMM: relative residual of the worst layer", "Pruning: sparsity", "Pruning: sparsity asked for", "Samples per second"}) {
    expect_in(text, str("<figcaption>", title));
  }
  for (const char* const title : {"Parameters of layers", "Time of layers alone"}) expect_in(text, title);
  for (const char* const stage : {"dense", "held", "factored", "tuned", "pruned"}) expect_in(text, str('>', stage, "</text>"));
  expect_in(text, "factored as tucker2, out 4 in 4");
  expect_in(text, ">tiny: held</text>");
  expect_in(text, ">tiny: factored</text>");
  expect_in(text, "config.resolved.yaml</summary>");
  expect_in(text, "tessera resume " + run());
  EXPECT_EQ(counts.at("table").as_int(), 6) << "runs, layers of two stages, stages, ranks and sparsity, environment";
  EXPECT_GE(counts.at("svg").as_int(), 14);
  EXPECT_EQ(text, page({run()})) << "the same bytes of the same files";
}

// conv1 has 72 weights, conv2's factors 32, 144 and 32.
TEST_F(Report, RanksAndSparsityAreShownOverTheStages) {
  const std::string text = page({run()});
  const std::string caption = "<caption>Ranks and sparsity of layers of tiny, at the ends of stages</caption>";
  expect_in(text, caption);
  const std::string table = text.substr(text.find(caption), text.find("</table>", text.find(caption)) - text.find(caption));
  std::string heads;
  for (const char* const stage : {"layer", "dense", "held", "factored", "tuned", "pruned"})
    heads +=
        str("<th scope=\"col\" aria-sort=\"none\"><button type=\"button\" class=\"sort\" disabled>", stage, "</button></th>");
  expect_in(table, heads);
  const auto row = [](const std::string& layer, const std::vector<std::string>& cells) {
    std::string markup = str("<tr><th scope=\"row\">", layer, "</th>");
    for (const std::string& cell : cells) markup += str("<td>", cell, "</td>");
    return markup + "</tr>";
  };
  expect_in(table, row("conv1", {"dense", "dense", "dense", "dense", "dense, 50.0 % zero"}));
  expect_in(table, row("conv2", {"dense", "dense, held to out 4 in 4", "out 4 in 4", "out 4 in 4", "out 4 in 4, 50.0 % zero"}));
  EXPECT_EQ(table.find("scope=\"row\">fc<"), std::string::npos) << "no stage changes it";

  const std::size_t curve = text.find("-desc\">", text.find("<figcaption>Pruning: sparsity</figcaption>"));
  const std::string told = text.substr(curve, text.find("</desc>", curve) - curve);
  EXPECT_NE(told.find(", 0.5 at step "), std::string::npos) << told;
  EXPECT_EQ(told.find("tiny: 0.5 at"), std::string::npos) << "it rises: " << told;
}

TEST_F(Report, DamagedMasksAreLeftOutWithAWarning) {
  const std::string damaged = copy_of_run("masks");
  const std::string weights = newest_checkpoint(damaged) + "/model.safetensors";
  std::string bytes = read_bytes(weights);
  bytes.back() ^= 1;
  write_bytes(weights, bytes);
  const Outcome outcome = run_program({"report", damaged, "-o", *folder_ / "page.html"});
  expect_outcome(outcome, 0, "ranks and sparsity of stage pruned are left out: ");
  const std::string text = read_bytes(*folder_ / "page.html");
  expect_in(text, "<td>out 4 in 4</td><td>-</td></tr>");
  checked();
}

// A page that is made repeatedly reads the weights of a finished stage only once.
TEST_F(Report, NetworksOfStagesThatAreDoneAreReadOnce) {
  const std::string changed = copy_of_run("once");
  SavedNetworks known;
  const auto last_layers = [&](SavedNetworks* networks) {
    return read_report_run(real_vfs(), changed, networks).networks.back().layers.size();
  };
  const std::size_t layers = last_layers(&known);
  EXPECT_GT(layers, 0u);
  const std::string weights = newest_checkpoint(changed) + "/model.safetensors";
  std::string bytes = read_bytes(weights);
  bytes.back() ^= 1;
  write_bytes(weights, bytes);
  EXPECT_EQ(last_layers(&known), layers);
  EXPECT_EQ(last_layers(nullptr), 0u);
}

TEST_F(Report, RunsLieOverEachOtherAndNoTextOfTheirsIsMarkup) {
  const std::string other = copy_of_run("b<script>alert(1)&");
  const std::string text = page({run(), other});
  checked();
  EXPECT_EQ(text.find("<script>alert"), std::string::npos);
  expect_in(text, "b&lt;script&gt;alert(1)&amp;");
  expect_in(text, "curve c1 d1");
  expect_in(text, "<th scope=\"row\">tiny/1</th>");
}

TEST_F(Report, ATableOfReproduceIsAPageToo) {
  const std::string text = page({kTable});
  const Value counts = checked();
  EXPECT_EQ(counts.at("section").as_int(), 4) << "at a glance, quality against time, settings and environment, commands";
  EXPECT_EQ(counts.at("table").as_int(), 3) << "results, settings, environment";
  EXPECT_EQ(counts.at("svg").as_int(), 2) << "a picture for each batch";
  EXPECT_EQ(counts.at("pre").as_int(), 5) << "three tables in LaTeX, commands of the table and of the page";
  expect_in(text, "class=\"front\"");
  expect_in(text, "batch 128, inference");
  expect_in(text, "test top-1, % (more is better)</text>");
  expect_in(text, "<caption>Settings of admm_resnet8</caption>");
  expect_in(text, "<td>optimizer.lr 0.1</td><td>dense</td><td>1, 2, 3</td><td>pretrain, dense, factored, tuned</td>");
  expect_in(text, "<caption>Environment of admm_resnet8</caption>");
  const Value root = parse_json(read_bytes(kTable), "json");
  const Value& cell = root.at("rows").as_list().front().at("cells").as_list().front();
  const std::int64_t threads = cell.at("threads").as_int();
  expect_in(text, str("<th scope=\"row\">", cell.at("processor").as_string(), "</th><td class=\"number\" data-sort=\"", threads,
                      "\">", threads, "</td><td>", cell.at("commit").as_string(), "</td>"));
  expect_in(text, "tessera reproduce configs/tables/admm_resnet8.yaml --dry-run");
}

// The table above was tuned and has a command. This one was not tuned, and the program that made it wrote no command.
TEST_F(Report, ATableWithoutACommandShowsNone) {
  Value root = parse_json(read_bytes(kTable), "json");
  ASSERT_TRUE(root.erase("command"));
  ASSERT_TRUE(root.erase("tune"));
  write_bytes(*folder_ / "older.json", to_json(root));
  const std::string text = page({*folder_ / "older.json"});
  checked();
  EXPECT_EQ(text.find("tessera reproduce"), std::string::npos);
  expect_in(text, "<td>0.1</td><td>dense</td>");
}

// The plots of a model that writes text show its perplexity: less is better.
TEST_F(Report, ARunOfTextIsAPageToo) {
  write_bytes(*folder_ / "lines.txt", numbered_lines(90));
  write_bytes(*folder_ / "gpt.yaml", R"(
version: 1
name: gpt
seed: 5
threads: {compute: 1, loader: 0}
data: {name: text, files: [lines.txt], split: [80, 10, 10], sequence: 16, batch: 8}
model: {name: gpt, layers: 1, width: 24, heads: 2, vocabulary: 256, length: 16}
optimizer: {name: adamw, lr: 0.01}
report: {latency: {batch: [2], repeats: 5}}
log_every: 4
stages:
  - {name: dense, train: 12s}
  - {name: factored, factorise: {layers: "blocks.*.mlp.*", format: svd, ranks: {rank: 4}, keep: always}}
  - {name: tuned, train: 8s}
)");
  const Outcome outcome =
      run_program({"train", *folder_ / "gpt.yaml", "--runs", *folder_ / "runs"}, {"TESSERA_CACHE=" + *folder_ / "cache"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::string text = page({*folder_ / "runs/gpt/1"});
  checked();
  expect_in(text, "<figcaption>perplexity on val</figcaption>");
  expect_in(text, "<figcaption>val perplexity against milliseconds at ");
  expect_in(text, "val perplexity (less is better)</text>");
  const std::size_t picture = text.find("<figcaption>val perplexity against");
  const std::string told = text.substr(text.find("-desc\">", picture), 400);
  expect_in(told, str("gpt: dense: ", logged(*folder_ / "runs/gpt/1", "dense", "val_perplexity"), " at "));
  expect_in(told, str("gpt: factored: ", logged(*folder_ / "runs/gpt/1", "tuned", "val_perplexity"), " at "));
  expect_in(text, "<td>rank 4</td><td>rank 4</td></tr>");
}

TEST_F(Report, ARunThatHasLoggedNothingSaysSo) {
  const std::string fresh = copy_of_run("fresh");
  for (const char* const file : {"/metrics.jsonl", "/timing.jsonl"}) write_bytes(fresh + file, "");
  for (const char* const file : {"/layers.csv", "/status.json", "/checkpoints"}) fs::remove_all(fresh + file);
  expect_in(page({fresh}), "tiny has logged no number yet.");
  checked();
}

TEST_F(Report, ALineThatIsBeingWrittenIsPassedOver) {
  const std::string growing = copy_of_run("growing");
  write_bytes(growing + "/metrics.jsonl", metrics() + "{\"stage\":\"tuned\",\"st");
  page({growing});
  checked();
}

TEST_F(Report, DamageIsNamedWithFileAndLine) {
  const std::string damaged = copy_of_run("damaged");
  const auto expect = [&](int code, const std::string& part) { expect_outcome(run_program({"report", damaged}), code, part); };
  const std::string first = metrics().substr(0, metrics().find('\n') + 1);
  write_bytes(damaged + "/metrics.jsonl", first + "{\"stage\": \n");
  expect(1, damaged + "/metrics.jsonl:2");
  write_bytes(damaged + "/metrics.jsonl", first + first + "{\"stage\": \"dense\", \"loss\": 1}\n");
  expect(1, damaged + "/metrics.jsonl:3");
  write_bytes(damaged + "/metrics.jsonl", "[1]\n");
  expect(1, damaged + "/metrics.jsonl:1: is a list");
  write_bytes(damaged + "/metrics.jsonl", metrics());
  write_bytes(damaged + "/layers.csv", read_bytes(run() + "/layers.csv") + "held,conv2\n");
  expect(1, damaged + "/layers.csv:4: has 2 fields");
  fs::remove(damaged + "/layers.csv");
  expect(1, damaged + "/layers.csv: is missing");
  fs::remove(damaged + "/env.json");
  expect(1, damaged + "/env.json");
  fs::remove(damaged + "/config.resolved.yaml");
  expect(2, "config.resolved.yaml is missing");
  expect_outcome(run_program({"report", *folder_ / "nowhere"}), 2, "report: there is no ");
  expect_outcome(run_program({"report", run(), run() + "/."}), 2, "are the same; give it once");
}

TEST_F(Report, IsWrittenThroughALink) {
  const std::string text = page({run()}), link = *folder_ / "link.html", file = *folder_ / "behind.html";
  fs::create_symlink("behind.html", link);
  expect_outcome(run_program({"report", run(), "--output", link}), 0, "wrote " + link);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(read_bytes(file), text);
}

TEST_F(Report, WatchEndsWithTheRun) {
  expect_outcome(run_program({"report", run(), "--watch"}), 2, "name it with --output");
  EXPECT_EQ(page({run()}, {"--watch"}).find("http-equiv"), std::string::npos) << "finished before it began";

  RunningProgram training({"train", *folder_ / "tiny.yaml", "--runs", *folder_ / "watched", "stages[0].train=1000000s"});
  ASSERT_TRUE(training.wait_for("dense epoch"));
  const std::string file = *folder_ / "watched.html";
  RunningProgram watch({"report", *folder_ / "watched/tiny/1", "-o", file, "--watch"});
  ASSERT_TRUE(watch.wait_for("wrote"));
  expect_in(read_bytes(file), "http-equiv=\"refresh\"");
  training.send(SIGTERM);
  EXPECT_EQ(training.finish().exit_code, 3);
  EXPECT_EQ(watch.finish().exit_code, 0);
  EXPECT_EQ(read_bytes(file).find("http-equiv"), std::string::npos);
  expect_in(read_bytes(file), ">stopped</td>");
}

// A printed page shows no buttons, and shows what a summary hides on the screen.
TEST_F(Report, PrintsWithoutWhatIsToBePressed) {
  const std::string text = page({run()});
  const std::size_t begin = text.find("@media print {");
  ASSERT_NE(begin, std::string::npos);
  const std::string print = text.substr(begin, text.find("</style>", begin) - begin), body = text.substr(text.find("<body"));
  expect_in(print, "nav, .skip, .latex { display: none; }");
  for (const char* const hidden : {"<nav ", "class=\"skip\"", "class=\"latex\""}) expect_in(body, hidden);
  expect_in(print, ".scroll { overflow: visible; }");
  expect_in(body, "class=\"scroll");
  for (const char* const event : {"'beforeprint'", "'afterprint'"}) expect_in(body, event);
  expect_in(body, "<details");
}

}  // namespace
}  // namespace tessera::testing
