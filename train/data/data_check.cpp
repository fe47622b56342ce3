#include "train/data/data_check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/config/read.h"
#include "core/cpu/parallel.h"
#include "core/support/error.h"
#include "train/config/utf8.h"

namespace tessera {
namespace {

struct Sample {
  std::size_t split = 0;
  std::int64_t index = 0;
};

std::vector<ImageFacts> inspect_all(const ImageSubset& subset) {
  std::vector<ImageFacts> facts(subset.indices.size());
  cpu::parallel_for(subset.size(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      facts[static_cast<std::size_t>(i)] = subset.images->inspect(subset.indices[static_cast<std::size_t>(i)]);
    }
  });
  return facts;
}

SplitReport report_split(const std::string& name, const ImageSubset& subset, const std::vector<ImageFacts>& facts) {
  SplitReport report{name, class_counts(subset), subset.size()};
  if (facts.empty()) return report;
  const auto [low, high] = std::ranges::minmax(facts, {}, &ImageFacts::height);
  const auto [narrow, wide] = std::ranges::minmax(facts, {}, &ImageFacts::width);
  report.min_height = low.height;
  report.max_height = high.height;
  report.min_width = narrow.width;
  report.max_width = wide.width;
  return report;
}

Duplicates describe_group(const std::vector<Sample>& group,
                          const std::vector<std::pair<std::string, const ImageSubset*>>& splits) {
  Duplicates duplicates;
  for (const Sample& sample : group) {
    const auto& [name, subset] = splits[sample.split];
    const auto label = static_cast<std::size_t>(subset->images->labels.data<std::int64_t>()[sample.index]);
    duplicates.members.push_back({name, subset->images->origin(sample.index), subset->images->classes[label]});
    duplicates.across_splits |= name != duplicates.members.front().split;
    duplicates.across_classes |= duplicates.members.back().class_name != duplicates.members.front().class_name;
  }
  return duplicates;
}

std::string size_range(const SplitReport& split) {
  if (split.samples == 0) return "-";
  return str(split.min_height, 'x', split.min_width, " to ", split.max_height, 'x', split.max_width);
}

void add_counts(std::string& text, const DataReport& report) {
  std::size_t widest = 7;
  for (const std::string& name : report.classes) widest = std::max(widest, name.size());
  const auto row = [&](const std::string& name, const auto& cell) {
    text += name + std::string(widest - name.size(), ' ');
    for (const SplitReport& split : report.splits) {
      const std::string value = cell(split);
      text += std::string(value.size() < 8 ? 8 - value.size() : 1, ' ') + value;
    }
    text += '\n';
  };
  row(std::string("class"), [](const SplitReport& split) { return split.name; });
  for (std::size_t c = 0; c < report.classes.size(); ++c) {
    row(report.classes[c], [c](const SplitReport& split) { return str(split.counts[c]); });
  }
  row(std::string("images"), [](const SplitReport& split) { return str(split.samples); });
  for (const SplitReport& split : report.splits) text += str(split.name, ": height x width ", size_range(split), '\n');
}

std::string kind_of(const Duplicates& duplicates) {
  if (duplicates.across_splits && duplicates.across_classes) return "the same image in several splits, under several labels";
  if (duplicates.across_splits) return "the same image in several splits";
  return duplicates.across_classes ? "the same image under several labels" : "the same image twice in one class";
}

struct SplitRow {
  const SplitReport& split;
  const std::vector<std::string>& classes;

  void fields(Fields& f) {
    Value counts = Value::map();
    for (std::size_t c = 0; c < classes.size(); ++c) counts.set(classes[c], split.counts[c]);
    f.add_computed("images", split.samples, {.help = "of the split"});
    f.add_computed("height", std::vector{split.min_height, split.max_height}, {.help = "least and greatest, as stored"});
    f.add_computed("width", std::vector{split.min_width, split.max_width}, {.help = "least and greatest, as stored"});
    f.add_computed("classes", counts, {.help = "images of each class, by its name"});
  }
};

Value splits_by_name(const DataReport& report) {
  Value splits = Value::map();
  for (const SplitReport& split : report.splits) splits.set(split.name, write(SplitRow{split, report.classes}));
  return splits;
}

struct BadRow {
  std::string path;
  std::string reason;

  void fields(Fields& f) {
    f.add("path", path, {.help = "the file"});
    f.add("reason", reason, {.help = "why it cannot be read"});
  }
};

}  // namespace

bool DataReport::clean() const {
  return bad.empty() && std::ranges::none_of(duplicates, [](const Duplicates& d) { return d.across_splits || d.across_classes; });
}

DataReport check_data(const DataConfig& config, std::uint64_t seed) {
  DataReport report;
  const ImageSplits data = load_readable_images(config, seed, report.bad);
  const std::vector<std::pair<std::string, const ImageSubset*>> splits{
      {std::string("train"), &data.train}, {std::string("val"), &data.val}, {std::string("test"), &data.test}};
  report.classes = data.train.images->classes;
  std::map<std::string, std::vector<Sample>> by_pixels;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const ImageSubset& subset = *splits[i].second;
    if (!subset.images) continue;
    const std::vector<ImageFacts> facts = inspect_all(subset);
    report.splits.push_back(report_split(splits[i].first, subset, facts));
    for (std::size_t k = 0; k < facts.size(); ++k) by_pixels[facts[k].pixels].push_back({i, subset.indices[k]});
  }
  std::vector<std::vector<Sample>> groups;
  for (auto& [pixels, group] : by_pixels) {
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  std::ranges::sort(groups, {}, [](const std::vector<Sample>& g) { return std::pair(g.front().split, g.front().index); });
  for (const std::vector<Sample>& group : groups) report.duplicates.push_back(describe_group(group, splits));
  std::ranges::stable_sort(report.duplicates, [](const Duplicates& a, const Duplicates& b) {
    return std::pair(a.across_splits, a.across_classes) > std::pair(b.across_splits, b.across_classes);
  });
  return report;
}

void Duplicates::Member::fields(Fields& f) {
  f.add("split", split, {.help = "it is in"});
  f.add("class", class_name, {.help = "its label"});
  f.add_computed("path", valid_utf8(origin), {.help = "where it is from"});
}

void Duplicates::fields(Fields& f) {
  f.add("across_splits", across_splits, {.help = "in several splits"});
  f.add("across_classes", across_classes, {.help = "under several labels: one of them is wrong"});
  f.add("images", members, {.help = "all equal, by split"});
}

void DataReport::fields(Fields& f) {
  std::vector<BadRow> unreadable;
  for (const BadFile& file : bad) unreadable.push_back({valid_utf8(file.path), valid_utf8(file.reason)});
  f.add_computed("clean", clean(), {.help = "no bad file, no image in two splits or under two labels"});
  f.add_computed("splits", splits_by_name(*this), {.help = "by their names: images, height, width, classes"});
  f.add_computed("bad", unreadable, {.help = "files that cannot be read"});
  f.add("duplicates", duplicates, {.help = "images that are there more than once; those across splits first"});
}

std::string to_text(const DataReport& report) {
  std::string text;
  add_counts(text, report);
  if (!report.bad.empty()) text += "\ncannot be read:\n";
  for (const BadFile& file : report.bad) text += str("  ", file.path, ": ", file.reason, '\n');
  for (const Duplicates& group : report.duplicates) {
    text += str('\n', kind_of(group), ":\n");
    for (const Duplicates::Member& member : group.members) {
      text += str("  ", member.split, "  ", member.class_name, "  ", member.origin, '\n');
    }
  }
  text += str('\n', report.bad.size(), " bad files, ", report.duplicates.size(),
              " images more than once: ", report.clean() ? "clean" : "not clean", '\n');
  return text;
}

}  // namespace tessera
