#include "train/data/text/text_check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

std::int64_t count_unknown(const TokenFile& tokens, std::int64_t begin, std::int64_t end, const Tokenizer& tokenizer) {
  std::int64_t unknown = 0;
  for (std::int64_t i = begin; i < end; ++i) unknown += tokenizer.unknown() == tokens.at(i);
  return unknown;
}

// Only files of equal length can have the same bytes, so only those are read and hashed.
void find_same(std::vector<TextFileReport>& reports) {
  std::map<std::string, std::string> first_of;  // path by content
  for (TextFileReport& report : reports) {
    if (std::ranges::count(reports, report.bytes, &TextFileReport::bytes) == 1) continue;
    const auto [known, fresh] = first_of.emplace(hash_of_file(report.path), report.path);
    if (!fresh) report.same_as = known->second;
  }
}

// The tokens of a file end where those of the next one begin, except for the end-of-text token between the two.
std::vector<TextFileReport> report_files(const std::vector<std::string>& files, const TokenFile& tokens,
                                         const Tokenizer& tokenizer) {
  std::vector<TextFileReport> reports;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool last = i + 1 == files.size();
    const std::int64_t begin = tokens.texts()[i].first;
    const std::int64_t end = last ? tokens.size() : tokens.texts()[i + 1].first - (tokenizer.end_of_text() ? 1 : 0);
    reports.push_back({files[i], tokens.texts()[i].bytes, end - begin, count_unknown(tokens, begin, end, tokenizer), {}});
  }
  find_same(reports);
  return reports;
}

}  // namespace

TextReport check_text(const TextDataConfig& config, std::uint64_t seed) {
  const TextSplits splits = load_text(config, seed);
  const Tokenizer& tokenizer = splits.train->tokenizer();
  TextReport report{
      tokenizer.config(), tokenizer.vocabulary(), report_files(config.files, splits.train->store().tokens(), tokenizer), {}};
  const std::vector<std::pair<const char*, const TextDataset*>> parts{
      {"train", splits.train.get()}, {"val", splits.val.get()}, {"test", splits.test.get()}};
  for (const auto& [name, part] : parts) {
    if (part) report.splits.push_back({name, part->tokens(), part->size()});
  }
  return report;
}

bool TextReport::clean() const {
  return std::ranges::all_of(files, [](const TextFileReport& file) { return file.same_as.empty(); });
}

void TextFileReport::fields(Fields& f) {
  f.add("path", path, {.help = "the file"});
  f.add("bytes", bytes, {.help = "of text"});
  f.add("tokens", tokens, {.help = "that it becomes"});
  f.add("unknown", unknown, {.help = "tokens for text that the tokenizer has no pieces for"});
  f.add("same_as", same_as, {.help = "an earlier file of the same bytes"});
}

void TextSplitReport::fields(Fields& f) {
  f.add("name", name, {.help = "train, val or test"});
  f.add("tokens", tokens, {.help = "of the split"});
  f.add("windows", windows, {.help = "samples"});
}

void TextReport::fields(Fields& f) {
  f.add_computed("clean", clean(), {.help = "no file is there twice"});
  f.add("tokenizer", tokenizer, {.help = "as the experiment file names it"});
  f.add("vocabulary", vocabulary, {.help = "tokens that it has"});
  f.add("files", files, {.help = "in their order"});
  f.add("splits", splits, {.help = "that have tokens"});
}

std::string to_text(const TextReport& report) {
  std::vector<std::vector<std::string>> rows{{"file", "bytes", "tokens", "bytes/token", "unknown"}};
  for (const TextFileReport& file : report.files) {
    rows.push_back(
        {file.path, str(file.bytes), str(file.tokens),
         formatted("%.3f", static_cast<double>(file.bytes) / static_cast<double>(std::max<std::int64_t>(file.tokens, 1))),
         str(file.unknown)});
  }
  std::string text = aligned(rows, {false, true, true, true, true});
  rows = {{"split", "tokens", "windows"}};
  for (const TextSplitReport& split : report.splits) rows.push_back({split.name, str(split.tokens), str(split.windows)});
  text += '\n' + aligned(rows, {false, true, true});
  for (const TextFileReport& file : report.files) {
    if (!file.same_as.empty()) text += str('\n', file.path, " has the bytes of ", file.same_as, '\n');
  }
  return text + str("\nvocabulary ", report.vocabulary, ": ", report.clean() ? "clean" : "not clean", '\n');
}

}  // namespace tessera
