#include <algorithm>
#include <tuple>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/config/utf8.h"
#include "train/tasks/class_counts.h"

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

std::string class_table(const ClassCounts& counts) {
  Rows rows{{"class", "n", "correct", "accuracy"}};
  for (std::size_t i = 0; i < counts.classes.size(); ++i) {
    const std::int64_t samples = counts.samples_of(i);
    rows.push_back(
        {printable(counts.classes[i]), str(samples), str(counts.count(i, i)), share_text(counts.count(i, i), samples)});
  }
  return aligned(rows, {false, true, true, true});
}

// The column heads are the class names if they fit, else the class numbers.
std::string confusion_matrix(const ClassCounts& counts) {
  const std::size_t classes = counts.classes.size();
  std::size_t width = 0;
  for (const std::string& name : counts.classes) width = std::max(width, text_width(name));
  const bool numbered = (classes + 1) * (width + 2) > kMatrixColumns;
  Rows rows{{""}};
  for (std::size_t i = 0; i < classes; ++i) rows[0].push_back(numbered ? str(i) : printable(counts.classes[i]));
  for (std::size_t truth = 0; truth < classes; ++truth) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back((numbered ? str(truth, ' ') : std::string()) + printable(counts.classes[truth]));
    for (std::size_t said = 0; said < classes; ++said) row.push_back(str(counts.count(truth, said)));
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

// Most samples first; ties in the order of the classes.
std::vector<Pair> confused_pairs(const ClassCounts& counts) {
  std::vector<Pair> pairs;
  for (std::size_t truth = 0; truth < counts.classes.size(); ++truth) {
    for (std::size_t said = 0; said < counts.classes.size(); ++said) {
      if (truth != said && counts.count(truth, said) > 0) pairs.push_back({counts.count(truth, said), truth, said});
    }
  }
  std::ranges::sort(pairs, {}, [](const Pair& pair) { return std::tuple(-pair.count, pair.truth, pair.said); });
  return pairs;
}

std::string pair_table(const ClassCounts& counts) {
  const std::vector<Pair> pairs = confused_pairs(counts);
  const std::size_t listed = std::min(pairs.size(), kPairs);
  Rows rows{{"true", "predicted", "n", "of the class"}};
  for (std::size_t i = 0; i < listed; ++i) {
    const Pair& pair = pairs[i];
    rows.push_back({printable(counts.classes[pair.truth]), printable(counts.classes[pair.said]), str(pair.count),
                    share_text(pair.count, counts.samples_of(pair.truth))});
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

std::vector<ClassRow> class_rows(const ClassCounts& counts) {
  std::vector<ClassRow> rows;
  for (std::size_t i = 0; i < counts.classes.size(); ++i) {
    rows.push_back({counts.classes[i], counts.samples_of(i), counts.count(i, i)});
  }
  return rows;
}

Value matrix_of(const ClassCounts& counts) {
  Value matrix = Value::list();
  for (std::size_t truth = 0; truth < counts.classes.size(); ++truth) {
    Value& row = matrix.as_list().emplace_back(Value::list());
    for (std::size_t said = 0; said < counts.classes.size(); ++said) row.as_list().emplace_back(counts.count(truth, said));
  }
  return matrix;
}

}  // namespace

std::string summary_of(const ClassCounts& counts) {
  std::string text = str("top-1 ", percent(counts.accuracy()));
  if (counts.top5) text += str("  top-5 ", percent(share(*counts.top5, counts.samples())));
  return text;
}

std::string to_text(const ClassCounts& counts) {
  return str(class_table(counts), '\n', counts.classes.size() > kMatrixClasses ? pair_table(counts) : confusion_matrix(counts));
}

std::string confusion_csv(const ClassCounts& counts) {
  std::string text = "true";
  for (const std::string& name : counts.classes) text += ',' + csv_field(name);
  text += '\n';
  for (std::size_t truth = 0; truth < counts.classes.size(); ++truth) {
    text += csv_field(counts.classes[truth]);
    for (std::size_t said = 0; said < counts.classes.size(); ++said) text += str(',', counts.count(truth, said));
    text += '\n';
  }
  return text;
}

void ClassCounts::fields(Fields& f) {
  const std::optional<double> top5_share = top5 ? share_of_any(*top5, samples()) : std::nullopt;
  f.add_computed("top1", accuracy(), {.help = "share of the samples whose class is the likeliest"});
  f.add_computed("top5", top5_share, {.help = "among the five likeliest; null below ten classes", .nullable = true});
  f.add_computed("classes", class_rows(*this), {.help = "in their order"});
  f.add_computed("confusion", matrix_of(*this), {.help = "samples: a list per true class, in it one number per predicted class"});
}

}  // namespace tessera
