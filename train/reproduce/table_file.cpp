#include "train/reproduce/table_file.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/config_file.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

template <class T>
bool all_differ(std::vector<T> items) {
  std::ranges::sort(items);
  return std::ranges::adjacent_find(items) == items.end();
}

// The keys under which a published row may give its figure.
std::string test_columns() {
  std::string columns;
  for (const Task* task : builtin_tasks()) columns += str(columns.empty() ? "" : ", ", task->metrics().front().column);
  return columns;
}

bool has_arm(const TableFile& table, const std::string& name) {
  return std::ranges::find(table.arms, name, &ArmConfig::name) != table.arms.end();
}

// The input shapes are compared later, where the experiments are read (comparison.h).
void require_compared(Fields& f, const TableFile& table, const ArmConfig& arm, const std::string& key) {
  if (arm.against.empty()) return;
  const auto other = std::ranges::find(table.arms, arm.against, &ArmConfig::name);
  const bool is_other = other != table.arms.end() && other->name != arm.name;
  f.require(is_other, key, str('\'', arm.against, "' is no other arm"));
  f.require(arm.name != table.baseline_arm(), key, "has no place in the baseline, which is compared with no arm");
  if (!is_other) return;
  f.require(other->against.empty(), key,
            str('\'', arm.against, "' is itself compared with '", other->against, "'; name an arm without this key"));
}

void require_arms(Fields& f, const TableFile& table) {
  std::vector<std::string> names;
  for (const ArmConfig& arm : table.arms) names.push_back(arm.name);
  f.require(!names.empty(), "arms", "is empty; a table needs an arm");
  f.require(all_differ(names), "arms", "two arms have one name; names must differ");
  f.require(table.baseline.empty() || has_arm(table, table.baseline), "baseline", str('\'', table.baseline, "' is no arm"));
  for (std::size_t i = 0; i < table.arms.size(); ++i) {
    const ArmConfig& arm = table.arms[i];
    const auto is_known = [&](std::int64_t seed) { return std::ranges::find(table.seeds, seed) != table.seeds.end(); };
    f.require(std::ranges::all_of(arm.seeds, is_known) && all_differ(arm.seeds), str("arms[", i, "].seeds"),
              "needs seeds of the table's that differ");
    if (arm.tuned_as.empty()) continue;
    const auto other = std::ranges::find(table.arms, arm.tuned_as, &ArmConfig::name);
    const std::string key = str("arms[", i, "].tuned_as");
    f.require(table.tune.has_value(), key, "has no effect: the table tunes nothing");
    f.require(other != table.arms.end() && other->tuned_as.empty() && other->name != arm.name, key,
              str('\'', arm.tuned_as, "' is no other arm that chooses for itself"));
  }
  for (std::size_t i = 0; i < table.arms.size(); ++i) require_compared(f, table, table.arms[i], str("arms[", i, "].against"));
  for (std::size_t i = 0; i < table.questions.size(); ++i) {
    const QuestionConfig& question = table.questions[i];
    for (const auto& [key, arm] : {std::pair("arm", question.arm), std::pair("against", question.against)}) {
      f.require(has_arm(table, arm), str("questions[", i, "].", key), str('\'', arm, "' is no arm"));
    }
  }
}

}  // namespace

void ArmConfig::fields(Fields& f) {
  f.add("name", name, {.help = "shown in the table", .example = "dense", .required = true});
  f.add("experiment", experiment,
        {.help = "experiment file, relative to the table file", .example = "dense.yaml", .required = true});
  f.add("set", set, {.help = "changes to it, as on the command line", .example = "['optimizer.lr=0.05']"});
  f.add("seeds", seeds, {.help = "those of the table's seeds that it runs with; all", .example = "[1]"});
  f.add("tuned_as", tuned_as, {.help = "the arm whose choice of the tuned setting it takes over", .example = "dense"});
  f.add("against", against,
        {.help = "the arm of the same input shape that it is compared with; the baseline", .example = "dense-1024"});
  f.require(is_plain_name(name), "name", str('\'', name, "' ", kNameRule));
  const bool own =
      std::ranges::any_of(set, [](const std::string& text) { return text.starts_with("seed=") || text.starts_with("name="); });
  f.require(!own, "set", "may not set seed or name, which are the table's");
}

void TuneConfig::fields(Fields& f) {
  f.add("key", key,
        {.help = "key of the experiment files that each arm chooses a value for", .example = "optimizer.lr", .required = true});
  f.add("values", values, {.help = "to choose from, by the metric on val", .example = "[0.1, 0.05]", .required = true});
  f.add("seed", seed, {.help = "the choice is made with", .range = non_negative, .example = "1"});
  f.require(values.size() >= 2 && all_differ(values), "values", "needs two or more values that differ");
}

void QuestionConfig::fields(Fields& f) {
  f.add("ask", ask,
        {.help = "the question, answered by yes, no or undecided", .example = "Is ADMM worth its epochs?", .required = true});
  f.add("arm", arm, {.help = "yes where it is the better one", .example = "admm", .required = true});
  f.add("against", against, {.help = "the arm that it is compared with", .example = "direct", .required = true});
  f.require(arm.empty() || arm != against, "against", "is the same arm");
}

void PublishedRow::fields(Fields& f) {
  f.add("name", name, {.help = "method and network", .example = "ADMM, ResNet-20", .required = true});
  add_tested(f, figure,
             {.help = "on a test split, in the unit of the table: per cent", .range = non_negative, .example = "91.03"});
  f.add("source", source, {.help = "where it is published", .example = "Yin et al., CVPR 2021", .required = true});
  f.add("conditions", conditions,
        {.help = "data, epochs, compression", .example = "CIFAR-10, 6.8x fewer parameters", .required = true});
  f.require(figure.has_value(), "name", str("has no figure; give ", test_columns()));
  f.require(!figure || metric_of(figure->metric).unit != Metric::Unit::fraction || figure->value <= 100, "name",
            "has a figure above 100 per cent");
}

void TableFile::fields(Fields& f) {
  f.add("version", version, {.help = "format of this file", .range = between(1, 1), .example = "1", .required = true});
  f.add("name", name, {.help = "of the results and of the folder of the runs", .example = "admm_resnet8", .required = true});
  f.add("seeds", seeds, {.help = "every arm runs with each", .range = non_negative, .example = "[1, 2, 3]"});
  f.add("baseline", baseline, {.help = "arm that those without `against` are compared with; the first", .example = "dense"});
  f.add("tune", tune, {.help = "a setting that each arm chooses on val", .example = "{key: optimizer.lr, values: [0.1, 0.05]}"});
  f.add("arms", arms, {.help = "what is compared", .example = "[{name: dense, experiment: dense.yaml}]", .required = true});
  f.add("questions", questions, {.help = "answered below the table", .example = "[{ask: 'Is it better?', arm: a, against: b}]"});
  f.add("published", published, {.help = "rows shown beside the measured ones", .example = "[]"});
  f.add("latency", latency, {.help = "how networks are timed", .example = "{batch: [1, 128]}"});
  f.add("decode", decode,
        {.help = "how one more position of a text, with those in front of it cached, is timed; not at all without it",
         .example = "{batch: [1]}"});
  f.add("training", training,
        {.help = "how a forward and a backward in training are timed; not at all without it", .example = "{batch: [128]}"});
  f.require(is_plain_name(name), "name", str('\'', name, "' ", kNameRule));
  f.require(!latency.batch.empty(), "latency", "needs a batch size");
  f.require(!decode || !decode->batch.empty(), "decode", "needs a batch size");
  f.require(!training || !training->batch.empty(), "training", "needs a batch size");
  f.require(!seeds.empty() && all_differ(seeds), "seeds", "needs one or more seeds that differ");
  require_arms(f, *this);
}

const std::vector<std::int64_t>& TableFile::seeds_of(const ArmConfig& arm) const { return arm.seeds.empty() ? seeds : arm.seeds; }

std::vector<TimedBatch> TableFile::timed() const {
  std::vector<TimedBatch> all;
  const auto add = [&](Phase phase, const LatencyConfig& config) {
    for (const std::int64_t batch : config.batch) all.push_back({phase, batch});
  };
  add(Phase::inference, latency);
  if (decode) add(Phase::decode, *decode);
  if (training) add(Phase::training, *training);
  return all;
}

std::int64_t TableFile::repeats_of(Phase phase) const {
  if (phase == Phase::inference) return latency.repeats;
  return phase == Phase::decode ? decode.value().repeats : training.value().repeats;
}

TableFile load_table_file(const std::string& path) {
  std::vector<ConfigProblem> problems;
  const std::optional<Value> root = load_config_file(path, {}, problems);
  if (!root) throw_config_error(problems);
  const std::size_t from_yaml = problems.size();
  TableFile table;
  read(*root, table, "", problems);
  problems = tidy(std::move(problems), from_yaml);
  if (!problems.empty()) throw_config_error(problems);
  const std::filesystem::path base = std::filesystem::absolute(path).parent_path();
  table.marks = marks_of(*root);
  for (ArmConfig& arm : table.arms) arm.experiment = (base / arm.experiment).lexically_normal().string();
  return table;
}

}  // namespace tessera
