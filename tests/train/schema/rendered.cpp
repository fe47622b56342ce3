#include "tests/train/schema/rendered.h"

#include <algorithm>

#include "core/support/error.h"

namespace tessera::testing {
namespace {

class Renderer {
 public:
  Rendered take() { return std::move(out_); }

  void write_block(const Value& block, const std::string& path, std::size_t indent) {
    note(out_.values, path);
    for (const Value::Entry& entry : block.as_map()) {
      const std::string inner = path.empty() ? entry.key : path + "." + entry.key;
      go_to(indent);
      note(out_.keys, inner);
      put(entry.key + ":");
      write_value(entry.value, inner, indent);
    }
  }

 private:
  void write_value(const Value& value, const std::string& path, std::size_t indent) {
    if (value.is_map() && !value.as_map().empty()) {
      end_line();
      go_to(indent + 2);
      return write_block(value, path, indent + 2);
    }
    if (is_list_of_blocks(value)) return write_items(value, path, indent + 2);
    put(" ");
    write_inline(value, path);
    end_line();
  }

  static bool is_list_of_blocks(const Value& value) {
    return value.is_list() && !value.as_list().empty() &&
           std::ranges::all_of(value.as_list(), [](const Value& item) { return item.is_map() && !item.as_map().empty(); });
  }

  // Only texts of letters go unquoted, so that faulty files also contain unquoted texts.
  static bool is_bare(const Value& value) {
    if (!value.is_string() || value.as_string().empty()) return false;
    const std::string& text = value.as_string();
    for (const char* word : {"true", "false", "null", "yes", "no", "on", "off"}) {
      if (text == word) return false;
    }
    return std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
  }

  void write_items(const Value& list, const std::string& path, std::size_t indent) {
    end_line();
    go_to(indent);
    note(out_.values, path);
    for (std::size_t i = 0; i < list.as_list().size(); ++i) {
      go_to(indent);
      put("- ");
      write_block(list.as_list()[i], str(path, '[', i, ']'), indent + 2);
    }
  }

  void write_inline(const Value& value, const std::string& path) {
    note(out_.values, path);
    const char* separator = "";
    if (value.is_list()) {
      put("[");
      for (std::size_t i = 0; i < value.as_list().size(); ++i, separator = ", ") {
        put(separator);
        write_inline(value.as_list()[i], str(path, '[', i, ']'));
      }
      put("]");
    } else if (value.is_map()) {
      put("{");
      for (const Value::Entry& entry : value.as_map()) {
        put(separator);
        put(entry.key + ": ");
        write_inline(entry.value, path + "." + entry.key);
        separator = ", ";
      }
      put("}");
    } else {
      put(is_bare(value) ? value.as_string() : to_json(value));
    }
  }

  void note(std::map<std::string, std::string>& places, const std::string& path) const {
    places[path] = str(line_, ':', column_);
  }
  void put(const std::string& text) {
    out_.text += text;
    column_ += text.size();
  }
  // Pads with blanks up to the indent. It adds none if the line is there already, after "- ".
  void go_to(std::size_t indent) {
    if (column_ < indent + 1) put(std::string(indent + 1 - column_, ' '));
  }
  void end_line() {
    out_.text += '\n';
    ++line_;
    column_ = 1;
  }

  Rendered out_;
  std::size_t line_ = 1;
  std::size_t column_ = 1;
};

}  // namespace

Rendered render(const Value& root) {
  Renderer renderer;
  renderer.write_block(root, "", 0);
  return renderer.take();
}

}  // namespace tessera::testing
