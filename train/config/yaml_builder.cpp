#include "train/config/yaml_builder.h"

#include <algorithm>

#include "core/support/error.h"
#include "train/config/scalar.h"
#include "train/config/yaml.h"

namespace tessera::detail {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20;  // aliases can repeat a long text many times

// Whether a scalar, after its anchor, starts with a quote that is never closed. yaml-cpp takes the end of the text for its end.
bool is_unclosed_quote(std::string_view text) {
  if (text.starts_with('&')) {
    text.remove_prefix(std::min(text.find_first_of(" \t\r\n"), text.size()));
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  if (!text.starts_with('"') && !text.starts_with('\'')) return false;
  const char quote = text.front();
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote && (quote == '"' || i + 1 == text.size() || text[i + 1] != quote)) {
      return false;
    } else if (text[i] == quote) {
      ++i;  // two single quotes are an escaped one
    }
  }
  return true;
}

}  // namespace

void YamlBuilder::fail(const Mark& mark, std::string message) {
  report(mark, std::move(message));
  throw_config_error(problems_);
}

Value YamlBuilder::finish(std::vector<ConfigProblem>& problems) {
  if (documents_ == 0) fail({origin_, 1, 1}, "there is no document; the text is empty");
  problems.insert(problems.end(), problems_.begin(), problems_.end());
  return std::move(root_);
}

void YamlBuilder::OnDocumentStart(const YAML::Mark& mark) {
  if (++documents_ > 1) fail(mark_of(mark), "a second document starts here; exactly one is read");
}

void YamlBuilder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const Mark at = mark_of(mark);
  count(at, {});
  if (at_key()) return refuse_key(at, "a key is missing before ':'");
  put(Value().with_mark(at), anchor, {});
}

void YamlBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& text) {
  const Mark at = mark_of(mark);
  const Size size{.bytes = text.size()};
  count(at, size);
  // yaml-cpp gives quoted scalars the tag "!", which a scalar written as "! text" has as well.
  const bool tagged = (tag != "?" && tag != "!") || text_.substr(static_cast<std::size_t>(mark.pos)).starts_with('!');
  if (tagged) report(at, "tags are not read; leave it out");
  if (is_unclosed_quote(text_.substr(static_cast<std::size_t>(mark.pos)))) fail(at, "the quote that opens here is never closed");
  if (at_key()) {
    put_key(at, text, tag == "?");
    if (anchor != YAML::NullAnchor) anchored_[anchor] = {Value(text).with_mark(at), size};
  } else {
    put(scalar(at, text, tag == "?").with_mark(at), anchor, size);
  }
}

Value YamlBuilder::scalar(const Mark& mark, const std::string& text, bool plain) {
  try {
    Value value = plain ? resolve_plain_scalar(text) : Value(text).with_quotes();
    if (!value.is_string()) return value;
    Value expanded(expand_environment(value.as_string()));
    return value.quoted() ? expanded.with_quotes() : expanded;
  } catch (const ConfigError& error) {
    report(mark, error.what());
    return {};
  }
}

void YamlBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const Mark at = mark_of(mark);
  const auto found = anchored_.find(anchor);
  if (found == anchored_.end()) fail(at, "the alias is inside its own anchor");
  const Size size = found->second.size;
  if (open_.size() + size.height > kMaxDepth) fail(at, str("nested deeper than ", kMaxDepth));
  count(at, size);
  if (at_key()) return refuse_key(at, "an alias cannot be a key; write the key out");
  put(Value(found->second.value).with_mark(at), YAML::NullAnchor, size);
}

void YamlBuilder::OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                                  YAML::EmitterStyle::value) {
  open(mark, tag, anchor, Value::list());
}

void YamlBuilder::OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) {
  open(mark, tag, anchor, Value::map());
}

void YamlBuilder::open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Value value) {
  const Mark at = mark_of(mark);
  count(at, {});
  if (open_.size() == kMaxDepth) fail(at, str("nested deeper than ", kMaxDepth));
  if (tag != "?" && !tag.empty()) report(at, "tags are not read; leave it out");
  Open opened{std::move(value.with_mark(at)), anchor, {.height = 1}};
  opened.is_key = at_key();
  open_.push_back(std::move(opened));
}

void YamlBuilder::close() {
  Open done = std::move(open_.back());
  open_.pop_back();
  if (!done.is_key) return put(std::move(done.value), done.anchor, done.size);
  // This is reported here and not in open(), because yaml-cpp takes any '[' that is never closed for the beginning of a key.
  refuse_key(done.value.mark(), "a key is text; a list or a block cannot be one");
}

void YamlBuilder::refuse_key(const Mark& mark, std::string message, std::string path) {
  problems_.push_back({mark, std::move(path), std::move(message)});
  open_.back().has_key = true;
  open_.back().skip = true;
}

std::string YamlBuilder::path_here() const {
  std::string path;
  for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
    const Open& outer = open_[i];
    if (outer.value.is_list()) {
      path += str('[', outer.value.as_list().size(), ']');
    } else {
      path += (path.empty() ? "" : ".") + outer.entry.key;
    }
  }
  return path;
}

void YamlBuilder::put_key(const Mark& mark, const std::string& text, bool plain) {
  if (text.empty()) return refuse_key(mark, "a key is empty");
  if (plain && text == "<<") return refuse_key(mark, "merge keys are not read; write the keys out");
  Open& map = open_.back();
  const auto [first, is_new] = map.keys.emplace(text, mark);
  if (!is_new) {
    const std::string block = path_here();
    return refuse_key(mark, str("repeated key; first at ", to_string(first->second)), block.empty() ? text : block + "." + text);
  }
  map.entry = {text, mark, {}};
  map.has_key = true;
}

void YamlBuilder::put(Value value, YAML::anchor_t anchor, const Size& size) {
  if (anchor != YAML::NullAnchor) anchored_[anchor] = {value, size};
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Open& parent = open_.back();
  parent.size.nodes += size.nodes;
  parent.size.bytes += size.bytes;
  parent.size.height = std::max(parent.size.height, size.height + 1);
  if (parent.value.is_list()) {
    parent.value.as_list().push_back(std::move(value));
    return;
  }
  if (!parent.skip) {
    parent.entry.value = std::move(value);
    parent.value.as_map().push_back(std::move(parent.entry));
  }
  parent.skip = false;
  parent.has_key = false;
}

void YamlBuilder::count(const Mark& mark, const Size& size) {
  total_.nodes += size.nodes;
  total_.bytes += size.bytes;
  if (total_.nodes > kMaxYamlNodes) fail(mark, str("more than ", kMaxYamlNodes, " nodes, counting what aliases repeat"));
  if (total_.bytes > kMaxTextBytes) {
    fail(mark, str("more than ", kMaxTextBytes >> 20, " MiB of text, counting what aliases repeat"));
  }
}

}  // namespace tessera::detail
