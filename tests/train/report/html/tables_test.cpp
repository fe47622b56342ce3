// Tables of a report page, as HTML and LaTeX, and the files that they are read from, intact and damaged.
#include <gtest/gtest.h>

#include <array>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "layers/sparse_linear.h"
#include "layers/svd_linear.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/report/html/html_table.h"
#include "train/report/html/page.h"
#include "train/report/html/result_table.h"
#include "train/report/html/run_tables.h"
#include "train/tasks/builtin.h"

namespace tessera::testing {
namespace {

HtmlTable small() {
  return {.id = "t", .caption = "A & B", .columns = {{"name"}, {"ms", true}}, .rows = {{{"a_1"}, {"2.0", 2}}, {{"<b>"}, {"-"}}}};
}

TEST(HtmlTable, HasButtonsInItsHeadersAndNumbersToSortBy) {
  const std::string html = to_html(small());
  EXPECT_NE(
      html.find(
          "<th scope=\"col\" aria-sort=\"none\" class=\"number\"><button type=\"button\" class=\"sort\" disabled>ms</button>"),
      std::string::npos)
      << html;
  EXPECT_NE(html.find("<td class=\"number\" data-sort=\"2\">2.0</td>"), std::string::npos) << html;
  EXPECT_NE(html.find("<td class=\"number\" data-sort=\"\">-</td>"), std::string::npos);
  EXPECT_NE(html.find("<th scope=\"row\">&lt;b&gt;</th>"), std::string::npos);
  EXPECT_NE(html.find("<caption>A &amp; B</caption>"), std::string::npos);
  EXPECT_NE(html.find("data-table=\"t\" disabled>Copy as LaTeX"), std::string::npos);
}

TEST(HtmlTable, IsATabularInLatex) {
  EXPECT_EQ(to_latex(small()),
            "\\begin{tabular}{lr}\n\\toprule\nname & ms \\\\\n\\midrule\na\\_1 & 2.0 \\\\\n"
            "\\textless{}b\\textgreater{} & - \\\\\n\\bottomrule\n\\end{tabular}\n");
  EXPECT_EQ(latex_escaped("50 % ± 1\\{$#~^}\n→"),
            "50 \\% $\\pm$ 1\\textbackslash{}\\{\\$\\#\\textasciitilde{}\\textasciicircum{}\\} $\\to$");
}

constexpr const char* kHeader =
    "stage,path,kind_before,kind_after,format,ranks_asked,ranks,relative_error,parameters_before,parameters_after,macs_before,"
    "macs_after,phase,dense_ms,compressed_ms,speedup,speedup_low,speedup_high,faster,network_share,decision,reason\n";

TEST(LayersCsv, IsReadByTheNamesOfItsColumns) {
  const std::vector<LayerLine> lines = parse_layers_csv(
      std::string(kHeader) +
          "s,conv,conv2d,tucker2_conv2d,tucker2,macs 0.4,out 6 in 4,0.7,1168,360,56448,21560,inference,0.105,0.069,1.5,1.4,1.6,"
          "true,0.41,factored,\n"
          "s,fc,linear,linear,tucker2,macs 0.4,,0,10,10,20,20,,,,,,,,,dense,\"has a, comma\"\n",
      "layers.csv");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].parameters_after, 360);
  EXPECT_EQ(lines[0].speedup_high, 1.6);
  EXPECT_EQ(decision_text(lines[0]), "factored as tucker2, out 6 in 4");
  EXPECT_FALSE(lines[1].dense_ms);
  EXPECT_EQ(decision_text(lines[1]), "stays dense: has a, comma");
}

TEST(LayersCsv, DamageIsNamedWithItsLine) {
  const auto message = [](const std::string& text) {
    return message_of<IoError>([&] { parse_layers_csv(text, "run/layers.csv"); });
  };
  EXPECT_EQ(message(""), "run/layers.csv:1: is empty; its first line names the columns");
  EXPECT_EQ(message("stage\n"), "run/layers.csv:1: has no column 'path'");
  EXPECT_EQ(message(std::string(kHeader) + "s,conv\n"), "run/layers.csv:2: has 2 fields, the header 22");
  EXPECT_EQ(message(std::string(kHeader) + "s,c,a,b,f,r,,0,many,1,1,1,,,,,,,,,dense,\n"),
            "run/layers.csv:2: column 'parameters_before': 'many' is no number");
}

class Tables : public ::testing::Test {
 protected:
  std::string file(const std::string& text) const {
    write_file_atomically(real_vfs(), folder_ / "t.json", text);
    return folder_ / "t.json";
  }
  std::string message(const std::string& text) const {
    return message_of<IoError>([&] { read_result_table(real_vfs(), file(text)); });
  }

  TemporaryFolder folder_;
};

// The fields of a table cell's result that a page reads.
std::string cell(int seed, int parameters, int macs, int bytes, const std::string& commit) {
  return str(R"({"seed": )", seed,
             R"(, "stages": [{"stage": "first", "parameters": 1, "macs": 1}, {"stage": "last", "parameters": )", parameters,
             R"(, "macs": )", macs, R"(}], "train_seconds": 12.25, "steps": 300, "file_bytes": )", bytes, R"(, "commit": ")",
             commit, R"(", "processor": "p", "threads": 2})");
}

std::string arms() {
  return str(
      R"({"name": "small", "baseline": "dense", "command": "tessera reproduce 'a b.yaml'", "timed_on": "a processor",
"tune": {"key": "optimizer.lr", "values": [0.1, 0.05], "seed": 1}, "answers": [{"answer": "Yes."}], "rows": [
 {"arm": "dense", "tuned": 0.1, "top1_mean": 0.75, "top1_sd": 0.01, "cells": [)",
      cell(1, 1000, 2500000, 2048, "c1"), ',', cell(2, 1000, 2500000, 2048, "c1"), ',', cell(3, 1000, 2500000, 2048, "c2"),
      R"(], "times": [{"batch": 8, "ms": {"median": 2, "p10": 1, "p90": 3}, "speedup": {"median": 1, "p10": 1, "p90": 1}}]},
 {"arm": "small", "tuned": 0.05, "top1_mean": 0.7, "top1_sd": 0.02, "cells": [)",
      cell(1, 500, 1000000, 1024, "c1"), ',', cell(2, 500, 1000000, 1024, "c1"),
      R"(], "times": [{"batch": 8, "phase": "inference", "ms": {"median": 1, "p10": 0.9, "p90": 1.1}, "speedup": null}]},
 {"arm": "broken", "top1_mean": null, "cells": [], "times": []}]})");
}

TEST_F(Tables, OfReproduceAreRead) {
  const ResultTable table = read_result_table(real_vfs(), file(arms()));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_TRUE(table.rows[0].baseline);
  EXPECT_EQ(table.rows[1].value, 0.7);
  EXPECT_EQ(table.rows[1].parameters, 500);
  EXPECT_FALSE(table.rows[2].value);
  const HtmlTable html = to_table(table, "t");
  ASSERT_EQ(html.columns.size(), 9u) << "one phase and batch, named or not";
  EXPECT_EQ(html.rows[0][2].text, "75.00");
  EXPECT_EQ(html.rows[1][3].text, "-") << "no deviation of two seeds";
  EXPECT_EQ(html.rows[1][7].text, "1 (0.9-1.1)");
  EXPECT_EQ(html.rows[2][4].text, "-");
  const std::vector<TimedPicture> pictures = pictures_of(table);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].scatter.points.size(), 2u);
  EXPECT_DOUBLE_EQ(pictures[0].scatter.points[0].half, 1.0) << "three seeds";
  EXPECT_EQ(pictures[0].scatter.points[1].half, 0) << "two seeds";
}

TEST_F(Tables, OfReproduceTellHowTheyWereMade) {
  const ResultTable table = read_result_table(real_vfs(), file(arms()));
  EXPECT_EQ(table.command, "tessera reproduce 'a b.yaml'");
  const auto texts = [](const HtmlTable& html) {
    std::vector<std::string> rows;
    for (const std::vector<HtmlCell>& cells : html.rows) {
      std::string& row = rows.emplace_back();
      for (const HtmlCell& each : cells) row += each.text + " | ";
    }
    return rows;
  };
  EXPECT_EQ(texts(settings_table(table, "s")),
            (std::vector<std::string>{"dense | optimizer.lr 0.1 | - | 1, 2, 3 | first, last | 300 | 12 | ",
                                      "small | optimizer.lr 0.05 | dense | 1, 2 | first, last | 300 | 12 | "}));
  EXPECT_EQ(texts(machines_table(table, "m")), (std::vector<std::string>{"p | 2 | c1 | 4 | ", "p | 2 | c2 | 1 | "}));
  const std::string page = report_page({.runs = {}, .tables = {table}}, {.command = "tessera report"});
  EXPECT_NE(page.find("tessera reproduce &#39;a b.yaml&#39; --dry-run"), std::string::npos);
}

TEST_F(Tables, OfRunsAreRead) {
  const ResultTable table = read_result_table(
      real_vfs(), file(R"({"processor": "p", "threads": 2, "rows": [{"experiment": "gpt", "stage": "dense", "token_loss": [2.5],
        "token_loss_mean": 2.5, "token_loss_sd": 0.0, "parameters": 10, "macs": 20, "file_bytes": 40, "latency": []}]})"));
  EXPECT_EQ(table.timed_on, "p, 2 threads");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].name, "gpt: dense");
  EXPECT_EQ(table.metric->key, "token_loss");
  EXPECT_EQ(table.rows[0].seeds, 1);
  EXPECT_TRUE(settings_table(table, "s").rows.empty());
  ASSERT_EQ(table.machines.size(), 1u);
  EXPECT_EQ(table.machines[0].processor, "p");
}

TEST_F(Tables, DamageIsNamedWithItsFileAndRow) {
  const std::string path = folder_ / "t.json";
  EXPECT_EQ(message("{}"), path + ": is no table; give the JSON of tessera reproduce or of tessera table --format json");
  EXPECT_NE(message("[1").find(path), std::string::npos);
  const std::string row = message(R"({"name": "t", "baseline": "a", "timed_on": "", "answers": [], "rows": [{"arm": 3}]})");
  EXPECT_TRUE(row.starts_with(path + ": rows[0]: ")) << row;
  EXPECT_NE(message(R"({"name": "t", "baseline": "a", "timed_on": "", "answers": [], "rows": [{"arm": "a"}]})").find("cells"),
            std::string::npos);
}

TEST_F(Tables, OfUserTextsMakeAPageWithoutTheirMarkup) {
  std::string text = arms();
  for (const std::string word :
       {"\"small\"", "\"Yes.\"", "\"a processor\"", "\"optimizer.lr\"", "\"first\"", "\"c1\"", "\"p\""}) {
    for (std::size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), "\"</p><script>x()\"");
  }
  const std::vector<std::string> paths{file(text)};
  const ReportSources sources = read_report_sources(real_vfs(), paths);
  const std::string page = report_page(sources, {.command = "tessera report '<script>'"});
  EXPECT_EQ(page.find("<script>x()"), std::string::npos);
  EXPECT_EQ(page.find("report '<script>"), std::string::npos);
  EXPECT_NE(page.find("&lt;/p&gt;&lt;script&gt;x()"), std::string::npos);
  EXPECT_EQ(page, report_page(sources, {.command = "tessera report '<script>'"}));
  EXPECT_EQ(page.find("http-equiv"), std::string::npos);
}

// The check of an experiment file refuses such a name, but the page must not rely on that.
TEST(ReportPage, OfARunThatBeganAMomentAgo) {
  ReportRun run{.path = "runs/a b/1", .name = "x<script>", .label = "x<script>", .metric = &usual_metric()};
  run.state = "begun";
  run.settings = "name: \"<script>\"\n";
  run.environment.emplace_back().key = "host";
  run.environment.back().value = "<script>";
  run.notes = {"forked from <script> at dense"};
  const std::string page = report_page({.runs = {run}, .tables = {}}, {.command = "tessera report", .reload_seconds = 5});
  EXPECT_NE(page.find("x&lt;script&gt; has logged no number yet."), std::string::npos);
  EXPECT_EQ(page.find("x<script>"), std::string::npos);
  EXPECT_NE(page.find("<script>"), std::string::npos) << "the page's own";
  EXPECT_EQ(page.find("<script>"), page.rfind("<script>"));
  EXPECT_NE(page.find("tessera resume &#39;runs/a b/1&#39;"), std::string::npos);
  EXPECT_NE(page.find("<meta http-equiv=\"refresh\" content=\"5\">"), std::string::npos);
}

TEST(RunTables, PointsOfAPassTakeTheNextMetric) {
  ReportRun run{.path = "r", .name = "r", .label = "r", .metric = &usual_metric()};
  const std::string key(usual_metric().key);
  PassReport pass;
  pass.pass = "factorise";
  pass.speed = Speed{4, 2, {2, 1.9, 2.1}, true};
  pass.timed_at = "batch 8";
  PassReport held = pass;
  held.pass = "admm";
  run.history.stages = {{.name = "dense", .done = true, .last = Scored{key, 0.9}},
                        {.name = "held", .done = true, .last = Scored{key, 0.8}, .passes = {held}},
                        {.name = "factored", .done = true, .passes = {pass}},
                        {.name = "tuned", .done = true, .last = Scored{key, 0.85}}};
  const std::vector<ReportRun> runs{run};
  const std::vector<TimedPicture> pictures = pictures_of(runs);
  ASSERT_EQ(pictures.size(), 1u);
  const std::vector<ScatterPoint>& points = pictures[0].scatter.points;
  ASSERT_EQ(points.size(), 2u) << "the constrained network is a dense one";
  EXPECT_EQ(points[0].name, "r: held");
  EXPECT_EQ(points[0].x.median, 4);
  EXPECT_EQ(points[1].name, "r: factored");
  EXPECT_DOUBLE_EQ(points[1].y, in_unit(usual_metric(), 0.85));
  EXPECT_EQ(points[0].kind, "baseline");
  EXPECT_EQ(points[1].kind, "arm");
  EXPECT_NE(points[0].shape, points[1].shape);
  const HtmlTable table = runs_table(runs);
  EXPECT_EQ(table.rows[0][8].text, "4 → 2");
  EXPECT_EQ(stages_table(run, "s").rows.size(), 4u);
}

TEST(RunTables, ANetworkThatAdmmTimedIsThatOfTheStageThatFactorises) {
  ReportRun run{.path = "r", .name = "r", .label = "r", .metric = &usual_metric()};
  const Scored score{std::string(usual_metric().key), 0.5};
  PassReport held, factorised;
  held.pass = "admm";
  held.speed = Speed{4, 2, {2, 1.9, 2.1}, true};
  held.timed_at = "batch 8";
  factorised.pass = "factorise";
  run.history.stages = {{.name = "held", .done = true, .last = score, .passes = {held}}};
  EXPECT_TRUE(pictures_of(std::vector<ReportRun>{run}).empty()) << "it is dense yet";
  EXPECT_EQ(stages_table(run, "s").rows[0][10].text, "-");
  run.history.stages.push_back({.name = "factored", .done = true, .last = score, .passes = {factorised}});
  const std::vector<TimedPicture> pictures = pictures_of(std::vector<ReportRun>{run});
  ASSERT_EQ(pictures.size(), 1u);
  ASSERT_EQ(pictures[0].scatter.points.size(), 2u);
  EXPECT_EQ(pictures[0].scatter.points[1].name, "r: factored");
  EXPECT_EQ(stages_table(run, "s").rows[1][10].text, "4 → 2");
}

// The first metric of the task decides, the second is plotted. The history holds only the first.
TEST(RunTables, PicturesShowThePicturedMetricOfTheStagesEnd) {
  constexpr std::array<Metric, 2> metrics{
      Metric{.key = "cost", .column = "cost", .heading = "cost", .more_is_better = false},
      Metric{.key = "doubt", .column = "doubt", .heading = "doubt", .more_is_better = false, .pictured = true}};
  ReportRun run{.path = "r", .name = "r", .label = "r", .metric = &metrics[0], .metrics = metrics};
  run.series = {{"val_cost", {{5, 3.0}, {9, 2.0}}}, {"val_doubt", {{5, 30.0}, {9, 20.0}, {15, 25.0}}}};
  PassReport pass;
  pass.pass = "factorise";
  pass.speed = Speed{4, 2, {2, 1.9, 2.1}, true};
  pass.timed_at = "batch 8";
  run.history.stages = {{.name = "dense", .done = true, .end_step = 9, .last = Scored{"cost", 2.0}},
                        {.name = "factored", .done = true, .end_step = 10, .passes = {pass}},
                        {.name = "tuned", .done = true, .end_step = 15, .last = Scored{"cost", 2.5}}};
  const std::vector<TimedPicture> pictures = pictures_of(std::vector<ReportRun>{run});
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].scatter.y_label, "val doubt (less is better)");
  ASSERT_EQ(pictures[0].scatter.points.size(), 2u);
  EXPECT_EQ(pictures[0].scatter.points[0].y, 20);
  EXPECT_EQ(pictures[0].scatter.points[1].y, 25);
  run.series[1].points.pop_back();
  EXPECT_EQ(pictures_of(std::vector<ReportRun>{run})[0].scatter.points.size(), 1u) << "not logged at the stage's end";
}

TEST(LayerStates, NameTheFormAndCountTheZeros) {
  Sequential network;
  Parameter& masked = network.add_child("masked", std::make_unique<Linear>(LinearConfig{.in = 4, .out = 2})).parameter("weight");
  masked.set_mask(Tensor::from(std::vector<std::uint8_t>{1, 0, 0, 0, 1, 0, 0, 0}, {2, 4}));
  network.add_child("norm", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 2}));
  network.add_child("factors", std::make_unique<SvdLinear>(SvdLinearConfig{.in = 6, .out = 5, .rank = 3}));
  network.add_child("sparse", std::make_unique<SparseLinear>(SparseLinearConfig{.in = 30, .out = 20, .kept = 60}));
  const std::vector<LayerState> states = layer_states(network);
  ASSERT_EQ(states.size(), 3u) << "a norm has no weights";
  EXPECT_EQ(states[0].form, "dense");
  EXPECT_DOUBLE_EQ(states[0].sparsity, 0.75);
  EXPECT_EQ(states[1].path, "factors");
  EXPECT_EQ(states[1].form, "rank 3");
  EXPECT_EQ(states[1].sparsity, 0);
  EXPECT_EQ(states[2].form, "sparse");
  EXPECT_DOUBLE_EQ(states[2].sparsity, 0.9);
}

TEST(RunTables, RanksAndSparsityStandForEachStageThatIsDone) {
  ReportRun run{.path = "r", .name = "r", .label = "r", .metric = &usual_metric()};
  PassReport held;
  held.pass = "admm";
  held.layers.resize(1);
  held.layers[0].path = "conv";
  held.layers[0].decision = "constrained";
  held.layers[0].ranks = Ranks{{"out", 4}, {"in", 2}};
  run.history.stages = {{.name = "held", .done = true, .passes = {held}}, {.name = "factored", .done = true}};
  run.networks = {{.stage = "held", .stage_done = true, .layers = {{"conv", "dense", 0}, {"fc", "dense", 0}}},
                  {.stage = "factored", .stage_done = true, .layers = {{"conv", "out 4 in 2", 0.25}, {"fc", "dense", 0}}},
                  {.stage = "sparse", .stage_done = true, .layers = {{"conv.0", "sparse", 0.5}, {"fc", "dense", 0}}},
                  {.stage = "tuned", .stage_done = false, .layers = {{"fc", "rank 2", 0}}}};
  const HtmlTable table = states_table(run, "s");
  ASSERT_EQ(table.columns.size(), 4u) << "a stage under way has none";
  ASSERT_EQ(table.rows.size(), 2u) << "fc stays dense";
  const auto texts = [&](std::size_t row) {
    std::string text;
    for (const HtmlCell& cell : table.rows[row]) text += cell.text + " | ";
    return text;
  };
  EXPECT_EQ(texts(0), "conv | dense, held to out 4 in 2 | out 4 in 2, 25.0 % zero | - | ");
  EXPECT_EQ(texts(1), "conv.0 | - | - | sparse, 50.0 % zero | ");
  run.networks.clear();
  EXPECT_TRUE(states_table(run, "s").rows.empty());
}

}  // namespace
}  // namespace tessera::testing
