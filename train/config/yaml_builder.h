// Builds a Value from the events of yaml-cpp and collects what is wrong on the way; used by parse_yaml alone.
#pragma once

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/mark.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/config/read.h"

namespace tessera::detail {

class YamlBuilder final : public YAML::EventHandler {
 public:
  // `text` is what the parser reads, without a byte-order mark.
  YamlBuilder(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}

  void OnDocumentStart(const YAML::Mark& mark) override;
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override;
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override;
  void OnMapEnd() override { close(); }

  void report(const Mark& mark, std::string message) { problems_.push_back({mark, "", std::move(message)}); }
  // Ends the reading with everything found so far.
  [[noreturn]] void fail(const Mark& mark, std::string message);
  // Fails at the innermost collection that is open, whose closing bracket yaml-cpp misses.
  [[noreturn]] void fail_unclosed() { fail(open_.back().value.mark(), "the bracket that opens here is never closed"); }
  bool has_open() const { return !open_.empty(); }
  Mark mark_of(const YAML::Mark& mark) const { return {origin_, mark.line + 1, mark.column + 1}; }
  // The document; appends what was reported.
  Value finish(std::vector<ConfigProblem>& problems);

 private:
  struct Size {
    std::size_t nodes = 1;
    std::size_t bytes = 0;
    std::size_t height = 0;  // collections on the longest way down
  };
  struct Anchored {
    Value value;
    Size size;
  };
  struct Open {
    Value value;
    YAML::anchor_t anchor;
    Size size;
    std::unordered_map<std::string, Mark> keys = {};  // maps: where each key stands
    Value::Entry entry = {};                          // maps: the key whose value comes next
    bool has_key = false;
    bool skip = false;  // the key was refused; its value is dropped
    bool is_key = false;
  };

  bool at_key() const { return !open_.empty() && open_.back().value.is_map() && !open_.back().has_key; }
  void put_key(const Mark& mark, const std::string& text, bool plain);
  void refuse_key(const Mark& mark, std::string message, std::string path = "");
  std::string path_here() const;  // dotted, of the innermost open block
  void put(Value value, YAML::anchor_t anchor, const Size& size);
  Value scalar(const Mark& mark, const std::string& text, bool plain);
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Value value);
  void close();
  void count(const Mark& mark, const Size& size);

  std::string_view text_;
  std::string origin_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, Anchored> anchored_;
  Value root_;
  std::size_t documents_ = 0;
  Size total_{.nodes = 0};
  std::vector<ConfigProblem> problems_;
};

}  // namespace tessera::detail
