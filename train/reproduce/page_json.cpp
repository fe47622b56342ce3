#include "core/config/fields.h"
#include "core/config/read.h"
#include "train/reproduce/page.h"

namespace tessera {
namespace {

// The JSON members of the parts of a TableView.
struct IntervalFields {
  MeanInterval value;
  void fields(Fields& f) {
    std::optional<double> low = value.is_bounded() ? std::optional(value.low) : std::nullopt;
    std::optional<double> high = value.is_bounded() ? std::optional(value.high) : std::nullopt;
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
    f.add("of_medians", time.of_medians, {.help = "speed-up by the two medians"});
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
    std::optional<double> mean, deviation = reported_deviation(row.tests());
    if (!row.cells.empty()) mean = mean_of(row.tests());
    f.add(str(column, "_mean"), mean, {.help = "over the seeds; null without any", .nullable = true});
    f.add(str(column, "_sd"), deviation, {.help = "sample standard deviation; null of fewer than three", .nullable = true});
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
    rows.as_list().push_back(
        write(RowFields{row, view.metric->column, view.file.timed(), view.has_inputs(), view.has_against()}));
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
