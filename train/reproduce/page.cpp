#include "train/reproduce/page.h"

#include <cctype>
#include <cmath>

#include "compress/report.h"
#include "core/config/fields.h"
#include "core/config/read.h"
#include "core/support/log.h"
#include "core/support/text.h"

namespace tessera {
namespace {

std::string signed_cell(const Metric& metric, double value) { return formatted("%+.2f", in_unit(metric, value)); }

std::string capitalised(std::string_view word) {
  std::string text(word);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

bool has_interval(const MeanInterval& difference) { return std::isfinite(difference.low); }

std::string difference_cell(const Metric& metric, const MeanInterval& difference) {
  if (difference.n == 0) return "-";
  if (!has_interval(difference)) return signed_cell(metric, difference.mean);
  return str(signed_cell(metric, difference.mean), " (", signed_cell(metric, difference.low), " to ",
             signed_cell(metric, difference.high), ") ", verdict_word(verdict_of(difference)));
}

std::string time_cell(const Summary& time) {
  return str(formatted("%.2f", time.median), " (", formatted("%.2f", time.p10), "-", formatted("%.2f", time.p90), ")");
}

const StageMean& last_stage(const ArmRow& row) { return row.stages.back(); }

std::string millions(std::int64_t count) { return formatted("%.2f", static_cast<double>(count) / 1e6); }

void add_line(std::string& text, const std::vector<std::string>& cells) {
  text += '|';
  for (const std::string& cell : cells) text += str(' ', cell, " |");
  text += '\n';
}

void add_header(std::string& text, const std::vector<std::string>& names) {
  add_line(text, names);
  text += '|';
  for (std::size_t i = 0; i < names.size(); ++i) text += "---|";
  text += '\n';
}

bool has_sparsity(const TableView& view) {
  return std::ranges::any_of(view.rows, [](const ArmRow& row) {
    return std::ranges::any_of(row.stages, [](const StageMean& stage) { return stage.sparsity > 0; });
  });
}

std::string sparsity_cell(const StageMean& stage) { return stage.sparsity > 0 ? formatted("%.1f", 100 * stage.sparsity) : "-"; }

bool has_verdicts(const TableView& view) {
  return std::ranges::any_of(
      view.rows, [](const ArmRow& row) { return !row.cells.empty() && row.cells.front().matched_layers.has_value(); });
}

// Whether its arms read inputs of different shapes.
bool has_inputs(const TableView& view) {
  std::vector<Shape> inputs;
  for (const ArmRow& row : view.rows) inputs.push_back(row.input);
  return std::ranges::adjacent_find(inputs, std::ranges::not_equal_to()) != inputs.end();
}

// Whether an arm is compared with another one than the baseline.
bool has_against(const TableView& view) {
  return std::ranges::any_of(view.rows, [&](const ArmRow& row) { return row.against != view.file.baseline_arm(); });
}

// "32x32x3"; "256" for tokens.
std::string input_cell(const ArmRow& row) {
  std::string text;
  for (const std::int64_t size : row.input.erase(0)) text += str(text.empty() ? "" : "x", size);
  return text;
}

std::string verdict_cell(const CellResult& cell) {
  return cell.matched_layers ? str(*cell.compressed_layers, " of ", *cell.matched_layers) : "-";
}

std::vector<std::string> arm_names(const TableView& view) {
  const Metric& metric = *view.metric;
  std::vector<std::string> names{"arm"};
  if (view.file.tune) names.push_back(view.file.tune->key);
  if (has_inputs(view)) names.emplace_back("input");
  names.insert(names.end(), {"n", heading_of(metric)});
  if (has_against(view)) names.emplace_back("compared with");
  names.push_back(str(difference_unit_of(metric), difference_unit_of(metric).empty() ? "" : " ", "over ",
                      has_against(view) ? "it" : "baseline", " (95 %)"));
  names.insert(names.end(), {"parameters", "MMACs"});
  if (has_sparsity(view)) names.insert(names.end(), {"sparsity %", "file KiB"});
  if (has_verdicts(view)) names.emplace_back("layers compressed");
  for (const TimedBatch& timed : view.file.timed()) {
    const std::string phase = timed.phase == Phase::inference ? std::string() : str(name_of(timed.phase), ", ");
    names.push_back(str(phase, "batch ", timed.batch, ": ms (p10-p90)"));
    names.emplace_back("speed-up (p10-p90)");
  }
  names.emplace_back("training s");
  return names;
}

std::vector<std::string> arm_cells(const TableView& view, const ArmRow& row) {
  const Metric& metric = *view.metric;
  std::vector<std::string> cells{markdown_cell(row.arm)};
  if (view.file.tune) cells.push_back(row.tuned ? shortest(*row.tuned) : "-");
  if (has_inputs(view)) cells.push_back(input_cell(row));
  cells.push_back(std::to_string(row.cells.size()));
  cells.push_back(mean_text(metric, row.tests()));
  if (has_against(view)) cells.push_back(row.is_baseline() ? "-" : markdown_cell(row.against));
  cells.push_back(row.is_baseline() ? "baseline" : difference_cell(metric, row.difference));
  cells.push_back(std::to_string(last_stage(row).parameters));
  cells.push_back(millions(last_stage(row).macs));
  if (has_sparsity(view)) {
    cells.push_back(sparsity_cell(last_stage(row)));
    cells.push_back(formatted("%.0f", static_cast<double>(row.cells.front().file_bytes) / 1024));
  }
  if (has_verdicts(view)) cells.push_back(verdict_cell(row.cells.front()));
  for (const std::optional<ArmTime>& time : row.times) {
    cells.push_back(time ? time_cell(time->time) : "-");
    cells.push_back(time && time->speedup ? time_cell(*time->speedup) : "-");
  }
  cells.push_back(formatted("%.0f", row.train_seconds()));
  return cells;
}

std::string arms_table(const TableView& view) {
  std::string text;
  add_header(text, arm_names(view));
  for (const ArmRow& row : view.rows) {
    if (!row.cells.empty()) add_line(text, arm_cells(view, row));
  }
  return text;
}

std::string stages_table(const TableView& view) {
  std::string text;
  const bool sparse = has_sparsity(view);
  std::vector<std::string> names{"arm", "stage", heading_of(*view.metric) + " at its end", "parameters", "MMACs", "residual"};
  if (sparse) names.emplace_back("sparsity %");
  add_header(text, names);
  for (const ArmRow& row : view.rows) {
    for (const StageMean& stage : row.stages) {
      std::vector<std::string> cells{markdown_cell(row.arm),
                                     markdown_cell(stage.stage),
                                     mean_text(*view.metric, stage.tests),
                                     std::to_string(stage.parameters),
                                     millions(stage.macs),
                                     stage.residuals.empty() ? "" : formatted("%.4f", mean_of(stage.residuals))};
      if (sparse) cells.push_back(sparsity_cell(stage));
      add_line(text, cells);
    }
  }
  return text;
}

std::string published_table(const TableView& view) {
  std::string text;
  add_header(text, {"published", heading_of(*view.metric), "conditions", "source"});
  for (const PublishedRow& row : view.file.published) {
    add_line(text, {markdown_cell(row.name), formatted("%.2f", row.figure->value), markdown_cell(row.conditions),
                    markdown_cell(row.source)});
  }
  return text;
}

std::string listed(const auto& values) {
  std::string text;
  for (const auto& value : values) text += str(text.empty() ? "" : ", ", value);
  return text;
}

// "; a and b took that of c, d took that of e", "" where each arm chose for itself.
std::string others_choices(const TableFile& file) {
  std::string text;
  for (const ArmConfig& chooser : file.arms) {
    std::vector<std::string> takers;
    for (const ArmConfig& arm : file.arms) {
      if (arm.tuned_as == chooser.name) takers.push_back(arm.name);
    }
    if (takers.empty()) continue;
    std::string names = takers.front();
    for (std::size_t i = 1; i < takers.size(); ++i) names += str(i + 1 == takers.size() ? " and " : ", ", takers[i]);
    text += str(text.empty() ? "; " : ", ", names, " took that of ", chooser.name);
  }
  return text;
}

std::string notes(const TableView& view) {
  const TableFile& file = view.file;
  std::string text = str(capitalised(view.metric->key), " is of the test split, from the last checkpoint: mean ",
                         file.seeds.size() < kRunsForDeviation ? "" : "± standard deviation ", "over seeds ", listed(file.seeds),
                         ". Differences are taken seed by seed; the interval is Student's.");
  if (file.tune) {
    const std::string others = others_choices(file);
    text += str(others.empty() ? " Each arm" : " Arms", " chose ", file.tune->key, " from ", file.tune->values.size(),
                " values by the validation ", view.metric->key, " of seed ", file.tune->seed, others, ".");
  }
  text += " Training time is that of the training steps, shared stages included, at the median rate of each stage.";
  if (!view.timed_on.empty()) {
    text += str(" Networks", has_inputs(view) || has_against(view) ? " that are compared" : "",
                " are timed in turn, batch norms folded, on ", view.timed_on, "; speed-up is over ",
                has_against(view) ? "the arm that a row is compared with" : file.baseline_arm(), ".");
    if (has_inputs(view)) text += " An arm has none over one of another input.";
    if (file.decode) text += " A decode time is that of one more position, with keys and values of those in front of it cached.";
    if (file.training) text += " A training time is that of a forward and a backward.";
  }
  if (has_verdicts(view))
    text += " Layers compressed are those that the last pass left so, of those that it matched, in the first seed's run.";
  if (!view.commits.empty()) text += str(" Measured at ", listed(view.commits), '.');
  if (view.cells < view.wanted) text += str("\n\n", view.cells, " of ", view.wanted, " cells have a result.");
  return text + '\n';
}

std::string failures(const TableView& view) {
  std::string text;
  for (const ArmRow& row : view.rows) {
    for (const std::string& failure : row.failures) text += str("- ", row.arm, ", ", markdown_cell(failure), '\n');
  }
  return text.empty() ? "" : str("\n## Runs without a figure\n\n", text);
}

std::string count_field(const std::optional<std::int64_t>& count) { return count ? std::to_string(*count) : ""; }

std::string csv_names(const TableView& view) {
  const std::string_view column = view.metric->column;
  return str("arm,tuned,seeds,", has_inputs(view) ? "input," : "", column, "_mean,", column, "_sd,",
             has_against(view) ? "against," : "",
             "difference_mean,difference_low,difference_high,verdict,parameters,macs,file_bytes,train_seconds,sparsity,"
             "matched_layers,compressed_layers,phase,batch,ms_median,ms_p10,ms_p90,speedup_median,speedup_p10,speedup_p90\n");
}

std::string csv_difference(const MeanInterval& difference) {
  if (difference.n == 0) return ",,,";
  return str(difference.mean, ',', has_interval(difference) ? str(difference.low) : "", ',',
             has_interval(difference) ? str(difference.high) : "", ',', verdict_word(verdict_of(difference)));
}

// What stands in each of a row's lines, in front of the phase.
std::string csv_head(const TableView& view, const ArmRow& row) {
  std::string text = str(csv_field(row.arm), ',', row.tuned ? shortest(*row.tuned) : "", ',', row.cells.size(), ',');
  if (has_inputs(view)) text += str(input_cell(row), ',');
  text += str(formatted("%.6f", mean_of(row.tests())), ',', formatted("%.6f", sample_stddev(row.tests())), ',');
  if (has_against(view)) text += str(row.is_baseline() ? "" : csv_field(row.against), ',');
  return str(text, csv_difference(row.difference), ',', last_stage(row).parameters, ',', last_stage(row).macs, ',',
             row.cells.front().file_bytes, ',', formatted("%.1f", row.train_seconds()), ',',
             formatted("%.6g", last_stage(row).sparsity), ',', count_field(row.cells.front().matched_layers), ',',
             count_field(row.cells.front().compressed_layers));
}

std::string csv_summary(const std::optional<Summary>& summary) {
  return summary ? str(',', summary->median, ',', summary->p10, ',', summary->p90) : ",,,";
}

// The members of a view's parts, for JSON.
struct IntervalFields {
  MeanInterval value;
  void fields(Fields& f) {
    std::optional<double> low = has_interval(value) ? std::optional(value.low) : std::nullopt;
    std::optional<double> high = has_interval(value) ? std::optional(value.high) : std::nullopt;
    f.add("n", value.n, {.help = "seeds that both have"});
    f.add("mean", value.mean, {.help = "of the differences"});
    f.add("low", low, {.help = "end of the 95 % interval; null of one seed", .nullable = true});
    f.add("high", high, {.help = "its other end", .nullable = true});
    f.add_computed("verdict", std::string(verdict_word(verdict_of(value))), {.help = "higher, lower or undecided"});
  }
};

struct BatchTime {
  TimedBatch timed = {};
  ArmTime time = {};
  void fields(Fields& f) {
    f.add("batch", timed.batch, {.help = "samples"});
    f.add_computed("phase", std::string(name_of(timed.phase)),
                   {.help = "inference, decode, or the forward and backward of training"});
    time.fields(f);
  }
};

struct RowFields {
  ArmRow row;
  std::string_view column;  // of the metric
  std::vector<TimedBatch> timed;
  bool with_input = false;  // in a table whose arms read different ones
  bool with_against = false;  // in a table with an arm that names one
  void fields(Fields& f) {
    IntervalFields difference{row.difference};
    std::vector<BatchTime> times;
    for (std::size_t i = 0; i < row.times.size(); ++i) {
      if (row.times[i]) times.push_back({timed[i], *row.times[i]});
    }
    f.add("arm", row.arm, {.help = "its name"});
    f.add("tuned", row.tuned, {.help = "value of the tuned key"});
    std::optional<double> mean, deviation;
    if (!row.cells.empty()) mean = mean_of(row.tests());
    if (row.cells.size() > 1) deviation = sample_stddev(row.tests());
    f.add(str(column, "_mean"), mean, {.help = "over the seeds; null without any", .nullable = true});
    f.add(str(column, "_sd"), deviation, {.help = "sample standard deviation; null of fewer than two", .nullable = true});
    if (with_input) {
      const Shape input = row.input.erase(0);
      f.add_computed("input", std::vector<std::int64_t>(input.begin(), input.end()), {.help = "shape of one sample"});
    }
    if (with_against) f.add("against", row.against, {.help = "the arm that difference and speed-ups refer to"});
    f.add("difference", difference, {.help = "to the baseline, or to the arm `against`, seed by seed"});
    f.add("cells", row.cells, {.help = "one per seed"});
    f.add("failures", row.failures, {.help = "seeds without a figure, and why"});
    f.add("times", times, {.help = "of each batch that was timed"});
  }
};

struct AnswerFields {
  QuestionAnswer answer;
  void fields(Fields& f) {
    IntervalFields difference{answer.difference};
    f.add("question", answer.question, {.help = "as the table file asks it"});
    f.add("difference", difference, {.help = "of the two arms, seed by seed"});
    f.add_computed("answer", answer_text(answer), {.help = "in words"});
  }
};

}  // namespace

std::string answer_text(const QuestionAnswer& answer) {
  const MeanInterval& difference = answer.difference;
  if (difference.n == 0) {
    return str(answer.question.ask, " Not known: no seed has a figure for both ", answer.question.arm, " and ",
               answer.question.against, '.');
  }
  const Verdict verdict = verdict_of(difference);
  const Metric& metric = *answer.metric;
  const Verdict better = metric.more_is_better ? Verdict::higher : Verdict::lower;
  const char* const word = verdict == Verdict::undecided ? "Undecided" : verdict == better ? "Yes" : "No";
  const std::string_view unit = difference_unit_of(metric);
  std::string text =
      str(answer.question.ask, ' ', word, ": ", answer.question.arm, " is ", cell_of(metric, std::abs(difference.mean), 2),
          unit.empty() ? "" : " ", unit, difference.mean < 0 ? " below " : " above ", answer.question.against);
  if (!has_interval(difference)) return str(text, " (", difference.n, " seed; no interval).");
  return str(text, " (95 % interval ", signed_cell(metric, difference.low), " to ", signed_cell(metric, difference.high), ", ",
             difference.n, " seeds).");
}

std::string to_markdown(const TableView& view, const std::string& command, const std::string& picture) {
  std::string text = str("# ", view.file.name, "\n\n```\n", command, "\n```\n\n");
  text += arms_table(view);
  if (!picture.empty()) text += str("\n![", capitalised(view.metric->key), " against measured time](", picture, ")\n");
  if (!view.answers.empty()) text += '\n';
  for (const QuestionAnswer& answer : view.answers) text += str("- ", answer_text(answer), '\n');
  text += str("\n", notes(view));
  text += str("\n## Stage by stage\n\n", stages_table(view));
  if (!view.file.published.empty()) text += str("\n## Published\n\n", published_table(view));
  return text + failures(view);
}

std::string to_csv(const TableView& view) {
  const std::vector<TimedBatch> timed = view.file.timed();
  std::string text = csv_names(view);
  for (const ArmRow& row : view.rows) {
    if (row.cells.empty()) continue;
    const std::string head = csv_head(view, row);
    for (std::size_t i = 0; i < row.times.size(); ++i) {
      text += str(head, ',', name_of(timed[i].phase), ',', timed[i].batch);
      const std::optional<ArmTime>& time = row.times[i];
      text += csv_summary(time ? std::optional(time->time) : std::nullopt);
      text += csv_summary(time ? time->speedup : std::nullopt);
      text += '\n';
    }
  }
  return text;
}

Value to_value(const TableView& view, const std::string& command) {
  Value value = Value::map();
  value.set("name", view.file.name);
  value.set("command", command);
  value.set("baseline", view.file.baseline_arm());
  value.set("cells", static_cast<std::int64_t>(view.cells));
  value.set("wanted", static_cast<std::int64_t>(view.wanted));
  value.set("timed_on", view.timed_on);
  Value commits = Value::list();
  for (const std::string& commit : view.commits) commits.as_list().emplace_back(commit);
  value.set("commits", std::move(commits));
  if (view.file.tune) value.set("tune", write(*view.file.tune));
  Value rows = Value::list();
  for (const ArmRow& row : view.rows)
    rows.as_list().push_back(write(RowFields{row, view.metric->column, view.file.timed(), has_inputs(view), has_against(view)}));
  value.set("rows", std::move(rows));
  Value answers = Value::list();
  for (const QuestionAnswer& answer : view.answers) answers.as_list().push_back(write(AnswerFields{answer}));
  value.set("answers", std::move(answers));
  Value published = Value::list();
  for (const PublishedRow& row : view.file.published) published.as_list().push_back(write(row));
  value.set("published", std::move(published));
  return value;
}

}  // namespace tessera
