#include "train/reproduce/page.h"

#include <cctype>
#include <cmath>

#include "compress/report.h"
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

std::string difference_cell(const Metric& metric, const MeanInterval& difference) {
  if (difference.n == 0) return "-";
  if (!difference.is_bounded()) return signed_cell(metric, difference.mean);
  return str(signed_cell(metric, difference.mean), " (", signed_cell(metric, difference.low), " to ",
             signed_cell(metric, difference.high), ") ", verdict_word(verdict_of(difference)));
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

// "32x32x3"; "256" for tokens.
std::string input_cell(const ArmRow& row) {
  std::string text;
  for (const std::int64_t size : row.input.erase(0)) text += str(text.empty() ? "" : "x", size);
  return text;
}

std::string verdict_cell(const CellResult& cell) {
  return cell.matched_layers ? str(*cell.compressed_layers, " of ", *cell.matched_layers) : "-";
}

// "batch 128"; "decode, batch 1".
std::string timed_name(const TimedBatch& timed) {
  return str(timed.phase == Phase::inference ? "" : str(name_of(timed.phase), ", "), "batch ", timed.batch);
}

std::vector<std::string> arm_names(const TableView& view) {
  const Metric& metric = *view.metric;
  std::vector<std::string> names{"arm"};
  if (view.file.tune) names.push_back(view.file.tune->key);
  if (view.has_inputs()) names.emplace_back("input");
  names.insert(names.end(), {"n", heading_of(metric)});
  if (view.has_against()) names.emplace_back("compared with");
  names.push_back(str(difference_unit_of(metric), difference_unit_of(metric).empty() ? "" : " ", "over ",
                      view.has_against() ? "it" : "baseline", " (95 %)"));
  names.insert(names.end(), {"parameters", "MMACs"});
  if (has_sparsity(view)) names.insert(names.end(), {"sparsity %", "file KiB"});
  if (has_verdicts(view)) names.emplace_back("layers compressed");
  for (const TimedBatch& timed : view.file.timed()) {
    names.push_back(timed_name(timed) + ": ms (p10-p90)");
    names.emplace_back("speed-up (p10-p90; of medians)");
  }
  names.emplace_back("training s");
  return names;
}

std::vector<std::string> arm_cells(const TableView& view, const ArmRow& row) {
  const Metric& metric = *view.metric;
  std::vector<std::string> cells{markdown_cell(row.arm)};
  if (view.file.tune) cells.push_back(row.tuned ? shortest(*row.tuned) : "-");
  if (view.has_inputs()) cells.push_back(input_cell(row));
  cells.push_back(std::to_string(row.cells.size()));
  cells.push_back(mean_text(metric, row.tests()));
  if (view.has_against()) cells.push_back(row.is_baseline() ? "-" : markdown_cell(row.against));
  cells.push_back(row.is_baseline() ? "baseline" : difference_cell(metric, row.difference));
  cells.push_back(std::to_string(last_stage(row).parameters));
  cells.push_back(millions(last_stage(row).macs));
  if (has_sparsity(view)) {
    cells.push_back(sparsity_cell(last_stage(row)));
    cells.push_back(formatted("%.0f", static_cast<double>(row.cells.front().file_bytes) / 1024));
  }
  if (has_verdicts(view)) cells.push_back(verdict_cell(row.cells.front()));
  for (const std::optional<ArmTime>& time : row.times) {
    cells.push_back(time ? spread_text(time->time) : "-");
    cells.push_back(time && time->speedup ? spread_text(*time->speedup, time->of_medians) : "-");
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

// E.g. " The value of c is also that of a and b. The value of e is also that of d."; "" if each arm chose for itself.
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
    text += str(" The value of ", chooser.name, " is also that of ", names, '.');
  }
  return text;
}

std::vector<TimedAlone> timed_alone(const TableView& view) {
  const std::vector<TimedBatch> timed = view.file.timed();
  std::vector<TimedAlone> all;
  for (const ArmRow& row : view.rows) {
    for (std::size_t i = 0; i < row.times.size(); ++i) {
      const std::optional<ArmTime>& time = row.times[i];
      if (!time || !time->alone) continue;
      all.push_back({str(row.arm, " at ", timed_name(timed[i])), time->time.median, *time->alone});
    }
  }
  return all;
}

std::string note_of_seeds(const TableFile& file) {
  if (file.seeds.size() == 1) return str(", of seed ", file.seeds.front(), '.');
  return str(": mean ", file.seeds.size() < kRunsForDeviation ? "" : "± standard deviation ", "over seeds ", listed(file.seeds),
             ". Differences are taken seed by seed; the interval is Student's.");
}

std::string notes(const TableView& view) {
  const TableFile& file = view.file;
  std::string text =
      str(capitalised(view.metric->key), " is measured on the test split, with the last checkpoint", note_of_seeds(file));
  if (file.tune) {
    const std::string others = others_choices(file);
    text += str(others.empty() ? " Each arm" : " Arms", " chose ", file.tune->key, " from ", file.tune->values.size(),
                " values by the validation ", view.metric->key, " of seed ", file.tune->seed, '.', others);
  }
  text += " Training time counts the training steps, those of shared stages too, at the median rate of each stage.";
  if (!view.timed_on.empty()) {
    text += str(" Networks", view.has_inputs() || view.has_against() ? " that are compared" : "",
                " are timed in turn, batch norms folded, on ", view.timed_on, "; speed-up is over ",
                view.has_against() ? "the arm that a row is compared with" : file.baseline_arm(), ".");
    if (view.has_inputs()) text += " Arms with different inputs have no speed-up over each other.";
    if (file.decode) text += " A decode time is that of one more position, with earlier keys and values cached.";
    if (file.training) text += " A training time is that of a forward and a backward.";
    const std::vector<TimedAlone> alone = timed_alone(view);
    if (alone.empty()) text += " The networks were not timed alone.";
    if (const std::string far = far_from_alone(alone); !far.empty()) text += ' ' + far;
  }
  if (has_verdicts(view))
    text += " Layers compressed: those that are compressed after the last pass, of those that it matched, in the first seed's run.";
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
  return str("arm,tuned,seeds,", view.has_inputs() ? "input," : "", column, "_mean,", column, "_sd,",
             view.has_against() ? "against," : "",
             "difference_mean,difference_low,difference_high,verdict,parameters,macs,file_bytes,train_seconds,sparsity,"
             "matched_layers,compressed_layers,phase,batch,ms_median,ms_p10,ms_p90,ms_alone,"
             "speedup_median,speedup_p10,speedup_p90,speedup_of_medians\n");
}

std::string csv_difference(const MeanInterval& difference) {
  if (difference.n == 0) return ",,,";
  return str(difference.mean, ',', difference.is_bounded() ? str(difference.low) : "", ',',
             difference.is_bounded() ? str(difference.high) : "", ',', verdict_word(verdict_of(difference)));
}

// The columns before the phase, which all lines of a row share.
std::string csv_head(const TableView& view, const ArmRow& row) {
  std::string text = str(csv_field(row.arm), ',', row.tuned ? shortest(*row.tuned) : "", ',', row.cells.size(), ',');
  if (view.has_inputs()) text += str(input_cell(row), ',');
  text += str(formatted("%.6f", mean_of(row.tests())), ',', deviation_field(row.tests()), ',');
  if (view.has_against()) text += str(row.is_baseline() ? "" : csv_field(row.against), ',');
  return str(text, csv_difference(row.difference), ',', last_stage(row).parameters, ',', last_stage(row).macs, ',',
             row.cells.front().file_bytes, ',', formatted("%.1f", row.train_seconds()), ',',
             formatted("%.6g", last_stage(row).sparsity), ',', count_field(row.cells.front().matched_layers), ',',
             count_field(row.cells.front().compressed_layers));
}

std::string csv_number(const std::optional<double>& number) { return number ? str(',', *number) : ","; }

std::string csv_summary(const std::optional<Summary>& summary) {
  return summary ? str(',', summary->median, ',', summary->p10, ',', summary->p90) : ",,,";
}

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
  if (!difference.is_bounded()) return str(text, " (", difference.n, " seed; no interval).");
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
      text += csv_number(time ? time->alone : std::nullopt);
      text += csv_summary(time ? time->speedup : std::nullopt);
      text += csv_number(time ? time->of_medians : std::nullopt);
      text += '\n';
    }
  }
  return text;
}

}  // namespace tessera
