#include "core/config/read.h"

#include <algorithm>
#include <unordered_map>

#include "core/config/read_scalar.h"
#include "core/config/suggest.h"
#include "core/support/error.h"

namespace tessera {
namespace {

// The value at "key" or "stages[1].factorise.from"; null if there is none.
const Value* value_at(const Value& map, std::string_view path) {
  const Value* at = &map;
  while (at != nullptr && !path.empty()) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    at = at->is_map() ? at->find(path.substr(0, end)) : nullptr;
    path.remove_prefix(end);
    while (at != nullptr && path.starts_with('[')) {
      const std::size_t close = path.find(']');
      const auto index = static_cast<std::size_t>(std::stoul(std::string(path.substr(1, close - 1))));
      at = at->is_list() && index < at->as_list().size() ? &at->as_list()[index] : nullptr;
      path.remove_prefix(close + 1);
    }
    if (path.starts_with('.')) path.remove_prefix(1);
  }
  return at;
}

std::string item_path(std::string_view path, std::size_t index) { return str(path, '[', index, ']'); }

}  // namespace

std::string join(std::string_view path, std::string_view key) { return str(path, path.empty() || key.empty() ? "" : ".", key); }

namespace detail {

class ReadFields final : public Fields {
 public:
  ReadFields(const Value& root, std::string_view path, std::vector<ConfigProblem>& problems)
      : problems_(problems), scalars_(problems) {
    open(root.is_null() ? empty_ : root, root.mark(), std::string(path));
  }
  void finish() {
    leave();
    for (const Unknown& unknown : unknown_) report_unknown(unknown);
  }

  void add(std::string_view key, bool& value, const FieldSpec& spec) override { scalar(key, value, spec); }
  void add(std::string_view key, std::int64_t& value, const FieldSpec& spec) override { scalar(key, value, spec); }
  void add(std::string_view key, double& value, const FieldSpec& spec) override { scalar(key, value, spec); }
  void add(std::string_view key, std::string& value, const FieldSpec& spec) override { scalar(key, value, spec); }
  void add(std::string_view key, Duration& value, const FieldSpec& spec) override { scalar(key, value, spec); }
  void add(std::string_view key, std::vector<std::int64_t>& value, const FieldSpec& spec) override { list(key, value, spec); }
  void add(std::string_view key, std::vector<double>& value, const FieldSpec& spec) override { list(key, value, spec); }
  void add(std::string_view key, std::vector<std::string>& value, const FieldSpec& spec) override { list(key, value, spec); }
  void add(std::string_view key, Value& value, const FieldSpec& spec) override {
    const Value* given = take(key, spec);
    if (!given) return;
    if (spec.check != nullptr) spec.check(*given, join(top().path, key), problems_);
    value = *given;
  }
  void add(std::string_view key, Extent& value, const FieldSpec& spec) override {
    const Value* given = take(key, spec);
    if (!given) return;
    const std::string path = join(top().path, key);
    if (!given->is_list()) {
      if (scalars_.read(*given, path, value.h, spec)) value.w = value.h;
    } else if (given->as_list().size() == 2) {
      scalars_.read(given->as_list()[0], item_path(path, 0), value.h, spec);
      scalars_.read(given->as_list()[1], item_path(path, 1), value.w, spec);
    } else {
      scalars_.report(*given, path, str("expected one integer or [height, width], found ", given->as_list().size(), " items"));
    }
  }

  void require(bool holds, std::string_view key, std::string_view rule) override {
    if (holds) return;
    const Value* given = value_at(*top().map, key);
    top().broken.push_back({given ? given->mark() : top().mark, join(top().path, key), std::string(rule)});
  }

 protected:
  Purpose purpose() const override { return Purpose::read; }

  bool enter(std::string_view key, const FieldSpec& spec) override {
    const Value* given = take(key, spec);
    const std::string path = join(top().path, key);
    if (!given && spec.required) return false;
    if (given && !given->is_map()) return scalars_.mismatch(*given, path, "a block");
    // An absent block is visited as an empty one, so that its required keys are reported as missing.
    open(given ? *given : empty_, given ? given->mark() : top().mark, path);
    return true;
  }

  std::optional<std::size_t> enter_list(std::string_view key, std::size_t, const FieldSpec& spec) override {
    const Value* given = take(key, spec);
    if (!given) return std::nullopt;
    const std::string path = join(top().path, key);
    if (!given->is_list()) {
      scalars_.mismatch(*given, path, "a list of blocks");
      return std::nullopt;
    }
    open(*given, given->mark(), path);
    return given->as_list().size();
  }

  bool enter_item(std::size_t index) override {
    const Value& item = top().map->as_list()[index];
    const std::string path = item_path(top().path, index);
    if (!item.is_map()) return scalars_.mismatch(item, path, "a block");
    open(item, item.mark(), path);
    return true;
  }

  void enter_alternative(std::string_view) override { throw InternalError("config: alternatives are entered to describe only"); }

  void leave() override {
    const Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (!frame.map->is_map()) return;
    known_.push_back({frame.path, frame.known, frame.forms, frame.chosen_by});
    const std::size_t unknown_before = unknown_.size();
    find_faulty_keys(frame);
    report_missing(frame, unknown_before);
    // After another problem the block holds defaults instead of the written values. Checking its rules would mislead.
    const bool sound = problems_.size() == frame.problems_before && unknown_.size() == frame.unknown_before;
    if (sound) problems_.insert(problems_.end(), frame.broken.begin(), frame.broken.end());
  }

  bool present(std::string_view key, bool) override {
    know(key);
    return top().map->find(key) != nullptr;
  }

  bool is_null(std::string_view key, bool) override {
    know(key);
    const Value* given = top().map->find(key);
    return given != nullptr && given->is_null();
  }

  bool is_list(std::string_view key, bool) override { return top().map->find(key) != nullptr && top().map->find(key)->is_list(); }

  bool add_name(std::string_view key, std::string& name, const FieldSpec& spec, std::span<const Form> forms) override {
    top().forms.assign(forms.begin(), forms.end());
    top().chosen_by = key;
    const Value* given = take(key, spec);
    const bool known = given ? scalars_.read(*given, join(top().path, key), name, spec) : !spec.required;
    if (!known) top().unjudged = true;
    return known;
  }

 private:
  struct Frame {
    const Value* map;  // or the list, between enter_list and its leave
    Mark mark;
    std::string path;
    std::size_t problems_before;
    std::size_t unknown_before;
    std::vector<std::string> known = {};
    std::vector<std::string> missing = {};  // required keys
    std::vector<ConfigProblem> broken = {};  // rules that span keys
    std::vector<Form> forms = {};  // the forms that the block may take
    std::string chosen_by = {};  // the key that names the form
    bool unjudged = false;  // the named form is unknown, so the keys are not checked
  };
  // A block that was visited.
  struct Known {
    std::string path;
    std::vector<std::string> keys;
    std::vector<Form> forms;
    std::string chosen_by;
  };
  struct Unknown {
    Mark mark;
    std::string path;
    std::string key;
    std::size_t block;  // index into known_
  };

  Frame& top() { return frames_.back(); }
  void open(const Value& map, const Mark& mark, std::string path) {
    frames_.push_back({&map, mark, std::move(path), problems_.size(), unknown_.size()});
  }

  // A present optional is announced twice: by present(), then with its value.
  void know(std::string_view key) {
    std::vector<std::string>& known = top().known;
    if (known.empty() || known.back() != key) known.emplace_back(key);
  }

  const Value* take(std::string_view key, const FieldSpec& spec) {
    know(key);
    const Value* given = top().map->find(key);
    if (!given && spec.required) top().missing.emplace_back(key);
    return given;
  }

  // Reports the repeated keys of a block that was read and notes the unknown ones.
  void find_faulty_keys(const Frame& frame) {
    std::unordered_map<std::string_view, const Mark*> seen;
    for (const Value::Entry& entry : frame.map->as_map()) {
      const auto [first, is_new] = seen.emplace(entry.key, &entry.mark);
      if (!is_new) {
        const std::string where = to_string(*first->second);
        problems_.push_back(
            {entry.mark, join(frame.path, entry.key), str("repeated key", where.empty() ? "" : "; first at ", where)});
      } else if (!frame.unjudged && std::find(frame.known.begin(), frame.known.end(), entry.key) == frame.known.end()) {
        unknown_.push_back({entry.mark, frame.path, entry.key, known_.size() - 1});
      }
    }
  }

  // Reports required keys that are absent, except those that a misspelled key stands for.
  void report_missing(const Frame& frame, std::size_t first_unknown) {
    for (const std::string& key : frame.missing) {
      const bool misspelled = std::any_of(unknown_.begin() + static_cast<std::ptrdiff_t>(first_unknown), unknown_.end(),
                                          [&](const Unknown& unknown) { return suggestion(unknown) == key; });
      if (!misspelled) problems_.push_back({frame.mark, join(frame.path, key), "required key is missing"});
    }
  }

  template <class T>
  void scalar(std::string_view key, T& value, const FieldSpec& spec) {
    if (const Value* given = take(key, spec)) scalars_.read(*given, join(top().path, key), value, spec);
  }

  template <class T>
  void list(std::string_view key, std::vector<T>& value, const FieldSpec& spec) {
    const Value* given = take(key, spec);
    if (!given) return;
    const std::string path = join(top().path, key);
    if (!given->is_list()) {
      scalars_.mismatch(*given, path, "a list", "write it in [ ]");
      return;
    }
    value.assign(given->as_list().size(), T{});
    for (std::size_t i = 0; i < value.size(); ++i) scalars_.read(given->as_list()[i], item_path(path, i), value[i], spec);
  }

  // The known key that was probably meant; "" if none is close.
  std::string suggestion(const Unknown& unknown) const {
    const std::vector<std::string>& here = known_[unknown.block].keys;
    const std::vector<std::string> near = nearest_names(unknown.key, std::vector<std::string_view>(here.begin(), here.end()), 1);
    return near.empty() ? std::string() : near[0];
  }

  void report_unknown(const Unknown& unknown) {
    const std::vector<std::string>& names = known_[unknown.block].keys;
    if (const std::string owners = forms_with(known_[unknown.block], unknown.key); !owners.empty()) {
      if (!misspells_choice(unknown.block))
        problems_.push_back(
            {unknown.mark, join(unknown.path, unknown.key), str("belongs to ", known_[unknown.block].chosen_by, ": ", owners)});
      return;
    }
    std::string message = "unknown key";
    if (const std::string near = suggestion(unknown); !near.empty()) {
      message += str("; did you mean '", near, "'?");
    } else if (const std::string* block = block_with(unknown.key)) {
      message += str("; it belongs under '", *block, '\'');
    } else {
      message += names.empty() ? "; this block has no keys" : "; known:";
      for (const std::string& name : names) message += str(' ', name);
    }
    problems_.push_back({unknown.mark, join(unknown.path, unknown.key), std::move(message)});
  }
  const std::string* block_with(const std::string& key) const {
    for (const Known& block : known_) {
      if (!block.path.empty() && std::ranges::find(block.keys, key) != block.keys.end()) return &block.path;
    }
    return nullptr;
  }
  // Whether an unknown key of the block looks like a misspelling of the key that chooses the form. The intended form is then
  // unknown, so no key can be said to belong to another form.
  bool misspells_choice(std::size_t block) const {
    return std::ranges::any_of(
        unknown_, [&](const Unknown& other) { return other.block == block && suggestion(other) == known_[block].chosen_by; });
  }
  // The names of the forms of a block that have a key, such as "glyphs" or "resnet8, resnet20"; "" if none has it.
  static std::string forms_with(const Known& block, const std::string& key) {
    std::string owners;
    for (const Form& form : block.forms) {
      const std::vector<std::string> keys = form.keys();
      if (std::ranges::find(keys, key) == keys.end()) continue;
      for (const std::string_view name : form.names) owners += str(owners.empty() ? "" : ", ", name);
    }
    return owners;
  }

  const Value empty_ = Value::map();
  std::vector<Frame> frames_;
  std::vector<Known> known_;  // every block visited
  std::vector<Unknown> unknown_;
  std::vector<ConfigProblem>& problems_;
  ScalarReader scalars_;
};

void read_block(const Value& value, void* block, Visit visit, std::string_view path, std::vector<ConfigProblem>& problems) {
  if (!value.is_map() && !value.is_null()) {
    ScalarReader(problems).mismatch(value, std::string(path), "a block");
    return;
  }
  ReadFields fields(value, path, problems);
  visit(block, fields);
  fields.finish();
}

}  // namespace detail

}  // namespace tessera
