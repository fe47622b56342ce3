#include <algorithm>

#include "core/config/read.h"
#include "core/support/error.h"

namespace tessera::detail {
namespace {

// A legal value that is not the default, if the type or the choices give one. Otherwise the declaration has to give it.
std::string_view other_value(const SchemaEntry& entry) {
  if (entry.type == "true or false") return entry.default_value == "true" ? "false" : "true";
  const std::vector<std::string_view>& choices = entry.spec.choices;
  const auto other = std::find_if(choices.begin(), choices.end(),
                                  [&](std::string_view choice) { return !choice.empty() && choice != entry.default_value; });
  if (other != choices.end()) return *other;
  return choices.empty() ? std::string_view() : choices.front();
}

class DescribeFields final : public Fields {
 public:
  std::vector<SchemaEntry> take() { return std::move(entries_); }

  void add(std::string_view key, bool& value, const FieldSpec& spec) override { record(key, "true or false", value, spec); }
  void add(std::string_view key, std::int64_t& value, const FieldSpec& spec) override { record(key, "integer", value, spec); }
  void add(std::string_view key, double& value, const FieldSpec& spec) override { record(key, "number", value, spec); }
  void add(std::string_view key, std::string& value, const FieldSpec& spec) override { record(key, "text", value, spec); }
  void add(std::string_view key, Duration& value, const FieldSpec& spec) override {
    record(key, "duration", to_string(value), spec);
  }
  void add(std::string_view key, Extent& value, const FieldSpec& spec) override {
    record(key, "integer or [height, width]", value.h == value.w ? Value(value.h) : Value::list({value.h, value.w}), spec);
  }
  void add(std::string_view key, std::vector<std::int64_t>& value, const FieldSpec& spec) override {
    record(key, "list of integers", Value::list({value.begin(), value.end()}), spec);
  }
  void add(std::string_view key, std::vector<double>& value, const FieldSpec& spec) override {
    record(key, "list of numbers", Value::list({value.begin(), value.end()}), spec);
  }
  void add(std::string_view key, std::vector<std::string>& value, const FieldSpec& spec) override {
    record(key, "list of texts", Value::list({value.begin(), value.end()}), spec);
  }
  void add(std::string_view key, Value& value, const FieldSpec& spec) override { record(key, "any", value, spec); }
  void require(bool, std::string_view, std::string_view) override {}

 protected:
  Purpose purpose() const override { return Purpose::describe; }
  bool enter(std::string_view key, const FieldSpec& spec) override {
    record(key, "block", Value::map(), spec);
    path_.push_back(join(path_.back(), key));
    return true;
  }
  std::optional<std::size_t> enter_list(std::string_view key, std::size_t, const FieldSpec& spec) override {
    record(key, "list of blocks", Value::list(), spec);
    path_.push_back(join(path_.back(), key));
    return 1;
  }
  bool enter_item(std::size_t) override {
    path_.push_back(path_.back() + "[]");
    return true;
  }
  void enter_alternative(std::string_view name) override { path_.push_back(str(path_.back(), '(', name, ')')); }
  void leave() override { path_.pop_back(); }
  bool present(std::string_view, bool has_value) override {
    absent_ = !has_value;
    return has_value;
  }
  bool is_null(std::string_view, bool) override { return false; }
  bool is_list(std::string_view, bool) override { return false; }
  bool add_name(std::string_view key, std::string& name, const FieldSpec& spec, std::span<const Form>) override {
    add(key, name, spec);
    return true;
  }

 private:
  SchemaEntry* find(std::string_view path) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const SchemaEntry& each) { return each.path == path; });
    return found == entries_.end() ? nullptr : &*found;
  }

  // A key that is recorded again takes several forms: they share one entry, which lists all their types.
  void record(std::string_view key, std::string_view type, const Value& value, const FieldSpec& spec) {
    std::string shown = value.is_string() ? value.as_string() : to_json(value);
    if (shown.empty()) shown = "''";
    if (absent_ || value.is_null()) shown = "none";
    if (spec.required) shown = "";
    if (SchemaEntry* other_form = find(join(path_.back(), key))) {
      other_form->type += str(" or ", type);
      return;
    }
    entries_.push_back({join(path_.back(), key), str(type, spec.nullable ? " or null" : ""), std::move(shown), spec});
    SchemaEntry& entry = entries_.back();
    if (entry.spec.example.empty()) entry.spec.example = other_value(entry);
    absent_ = false;
  }

  std::vector<std::string> path_{""};
  bool absent_ = false;  // the key being recorded belongs to an empty optional
  std::vector<SchemaEntry> entries_;
};

}  // namespace

std::vector<SchemaEntry> schema_of(void* block, Visit visit) {
  DescribeFields fields;
  visit(block, fields);
  return fields.take();
}

std::vector<std::string> keys_of(void* block, Visit visit) {
  std::vector<std::string> keys;
  for (SchemaEntry& entry : schema_of(block, visit)) {
    if (entry.path.find_first_of(".[(") == std::string::npos) keys.push_back(std::move(entry.path));
  }
  return keys;
}

}  // namespace tessera::detail
