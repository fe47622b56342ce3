#include <algorithm>
#include <tuple>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/eval_report.h"
#include "train/run/history.h"

namespace tessera {
namespace {

constexpr std::size_t kMatrixClasses = 20;  // more do not fit a terminal
constexpr std::size_t kPairs = 20;
constexpr std::size_t kMatrixColumns = 110;

using Rows = std::vector<std::vector<std::string>>;

double share(std::int64_t part, std::int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

std::string share_text(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? percent(share(part, whole)) : std::string("-");
}

// A folder's name may hold what moves a terminal's cursor.
std::string shown(const std::string& name) {
  std::string text = name;
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return text;
}

std::string where(const EvalReport& report) {
  return str(report.run, ": stage ", report.stage, report.stage_done ? ", its end (step " : ", step ", report.step,
             report.stage_done ? ")" : "", report.averaged ? ", moving averages" : "");
}

std::string class_table(const EvalReport& report) {
  Rows rows{{"class", "n", "correct", "accuracy"}};
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    const std::int64_t samples = report.samples_of(i);
    rows.push_back({shown(report.classes[i]), str(samples), str(report.count(i, i)), share_text(report.count(i, i), samples)});
  }
  return aligned(rows, {false, true, true, true});
}

// Columns are headed by the classes' names where they fit, else by their numbers.
std::string confusion_matrix(const EvalReport& report) {
  const std::size_t classes = report.classes.size();
  std::size_t width = 0;
  for (const std::string& name : report.classes) width = std::max(width, text_width(name));
  const bool numbered = (classes + 1) * (width + 2) > kMatrixColumns;
  Rows rows{{""}};
  for (std::size_t i = 0; i < classes; ++i) rows[0].push_back(numbered ? str(i) : shown(report.classes[i]));
  for (std::size_t truth = 0; truth < classes; ++truth) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back((numbered ? str(truth, ' ') : std::string()) + shown(report.classes[truth]));
    for (std::size_t said = 0; said < classes; ++said) row.push_back(str(report.count(truth, said)));
  }
  std::vector<bool> right(classes + 1, true);
  right[0] = false;
  return "confusion matrix: rows are the true classes, columns the predicted ones\n" + aligned(rows, right);
}

struct Pair {
  std::int64_t count;
  std::size_t truth;
  std::size_t said;
};

// Most samples first; of equal ones in the order of the classes.
std::vector<Pair> confused_pairs(const EvalReport& report) {
  std::vector<Pair> pairs;
  for (std::size_t truth = 0; truth < report.classes.size(); ++truth) {
    for (std::size_t said = 0; said < report.classes.size(); ++said) {
      if (truth != said && report.count(truth, said) > 0) pairs.push_back({report.count(truth, said), truth, said});
    }
  }
  std::ranges::sort(pairs, {}, [](const Pair& pair) { return std::tuple(-pair.count, pair.truth, pair.said); });
  return pairs;
}

std::string pair_table(const EvalReport& report) {
  const std::vector<Pair> pairs = confused_pairs(report);
  const std::size_t listed = std::min(pairs.size(), kPairs);
  Rows rows{{"true", "predicted", "n", "of the class"}};
  for (std::size_t i = 0; i < listed; ++i) {
    const Pair& pair = pairs[i];
    rows.push_back({shown(report.classes[pair.truth]), shown(report.classes[pair.said]), str(pair.count),
                    share_text(pair.count, report.samples_of(pair.truth))});
  }
  return str("most confused: ", listed, " of ", pairs.size(), " pairs; --confusion FILE writes the whole matrix\n",
             aligned(rows, {false, false, true, true}));
}

std::optional<double> share_of_any(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? std::optional(share(part, whole)) : std::nullopt;
}

struct ClassRow {
  std::string name;
  std::int64_t samples = 0;
  std::int64_t correct = 0;

  void fields(Fields& f) {
    f.add("name", name, {.help = "of the class"});
    f.add("samples", samples, {.help = "of the class in the split"});
    f.add("correct", correct, {.help = "of these, how many were told"});
    f.add_computed("accuracy", share_of_any(correct, samples), {.help = "null without samples", .nullable = true});
  }
};

std::vector<ClassRow> class_rows(const EvalReport& report) {
  std::vector<ClassRow> rows;
  for (std::size_t i = 0; i < report.classes.size(); ++i) {
    rows.push_back({report.classes[i], report.samples_of(i), report.count(i, i)});
  }
  return rows;
}

Value matrix_of(const EvalReport& report) {
  Value matrix = Value::list();
  for (std::size_t truth = 0; truth < report.classes.size(); ++truth) {
    Value& row = matrix.as_list().emplace_back(Value::list());
    for (std::size_t said = 0; said < report.classes.size(); ++said) row.as_list().emplace_back(report.count(truth, said));
  }
  return matrix;
}

}  // namespace

std::string to_text(const EvalReport& report) {
  const Evaluation& total = report.total;
  std::string text = str(where(report), "; split ", report.split, ", ", total.samples, " samples\nloss ",
                         formatted("%.6g", total.loss), "  top-1 ", percent(total.accuracy()));
  if (report.top5) text += str("  top-5 ", percent(share(*report.top5, total.samples)));
  text += str("\n\n", class_table(report), '\n');
  return text + (report.classes.size() > kMatrixClasses ? pair_table(report) : confusion_matrix(report));
}

std::string confusion_csv(const EvalReport& report) {
  std::string text = "true";
  for (const std::string& name : report.classes) text += ',' + csv_field(name);
  text += '\n';
  for (std::size_t truth = 0; truth < report.classes.size(); ++truth) {
    text += csv_field(report.classes[truth]);
    for (std::size_t said = 0; said < report.classes.size(); ++said) text += str(',', report.count(truth, said));
    text += '\n';
  }
  return text;
}

void EvalReport::fields(Fields& f) {
  const std::optional<double> top5_share = top5 ? share_of_any(*top5, total.samples) : std::nullopt;
  f.add("run", run, {.help = "its folder"});
  f.add("stage", stage, {.help = "of the checkpoint"});
  f.add("step", step, {.help = "of the checkpoint"});
  f.add("stage_done", stage_done, {.help = "the checkpoint is the stage's end"});
  f.add("averaged", averaged, {.help = "moving averages of the weights were evaluated"});
  f.add("split", split, {.help = "evaluated samples", .choices = {"train", "val", "test"}});
  f.add("samples", total.samples, {.help = "of the split"});
  f.add("loss", total.loss, {.help = "mean cross-entropy"});
  f.add_computed("top1", total.accuracy(), {.help = "share of the samples whose class is the likeliest"});
  f.add_computed("top5", top5_share, {.help = "among the five likeliest; null below ten classes", .nullable = true});
  f.add_computed("classes", class_rows(*this), {.help = "in their order"});
  f.add_computed("confusion", matrix_of(*this), {.help = "samples: a list per true class, in it one number per predicted class"});
}

Value to_value(const EvalReport& report) { return write(report); }

}  // namespace tessera
