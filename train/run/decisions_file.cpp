#include "train/run/decisions_file.h"

#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "train/checkpoint/kill_point.h"

namespace tessera {
namespace {

constexpr std::int64_t kVersion = 1;

struct DecisionsFile {
  Value choices = Value::map();

  void fields(Fields& f) {
    f.add_computed("version", kVersion, {.help = "readers refuse another one"});
    f.add("decisions", choices, {.help = "what was chosen, by what it was chosen for"});
  }
};

}  // namespace

Value to_value(const DecisionMap& decisions) {
  DecisionsFile file;
  for (const auto& [key, choice] : decisions) file.choices.set(key, choice);
  return write(file);
}

DecisionMap decisions_from(const Value& value) {
  const std::int64_t version = value.at("version").as_int();
  TESSERA_CHECK(version == kVersion, ConfigError, "decisions: version is ", version, "; this program reads ", kVersion);
  DecisionMap decisions;
  for (const Value::Entry& entry : value.at("decisions").as_map()) decisions[entry.key] = entry.value.as_string();
  return decisions;
}

DecisionMap read_decisions(Vfs& vfs, const std::filesystem::path& path) {
  const std::string text = vfs.read_file(path);
  try {
    return decisions_from(parse_json(text, path.string()));
  } catch (const Error& error) {
    throw ConfigError(str(path.string(), ": not a decisions.json of a run: ", error.what()));
  }
}

DecisionMap recorded_decisions(const Value& manifest) {
  const Value* const recorded = manifest.find("decisions");
  return recorded == nullptr ? DecisionMap() : decisions_from(*recorded);
}

void write_decisions(Vfs& vfs, const std::filesystem::path& path, const DecisionMap& decisions) {
  write_file_atomically(vfs, path, to_json(to_value(decisions), 2) + "\n");
}

DecisionMap surviving_decisions(Vfs& vfs, const std::filesystem::path& path, DecisionMap saved) {
  DecisionMap decisions;
  try {
    decisions = read_decisions(vfs, path);
  } catch (const Error& error) {
    log_warning(str("resume: ", error.what(), "; choices that the checkpoint lacks are measured again and bytes may differ"));
  }
  decisions.merge(saved);
  return decisions;
}

std::unique_ptr<DecisionScope> decide_for_run(Vfs& vfs, const std::filesystem::path& path, DecisionMap known, bool deterministic,
                                              const MeasuredDecision& told) {
  write_decisions(vfs, path, known);
  const auto record = [&vfs, path, told, all = known, count = std::int64_t{0}](const std::string& key,
                                                                               const std::string& choice) mutable {
    kill_point("timing", ++count);
    all[key] = choice;
    write_decisions(vfs, path, all);
    if (told) told(key, choice);
  };
  return std::make_unique<DecisionScope>(
      DecisionPolicy{.measure = !deterministic, .known = std::move(known), .on_measured = record});
}

}  // namespace tessera
