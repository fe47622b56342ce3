#include "train/report/plot/markup.h"

#include "core/support/error.h"

namespace tessera {
namespace {

// The tab stop lets the keyboard scroll to what is cut off. Without it only a pointer could.
std::string reached(std::string_view label) { return str(" tabindex=\"0\" role=\"region\" aria-label=\"", escaped(label), '"'); }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7f)
      out += "\xEF\xBF\xBD";
    else
      out += c;
  }
  return out;
}

std::string scroll_frame(std::string_view label, std::string_view markup) {
  return str("<div class=\"scroll\"", reached(label), '>', markup, "</div>\n");
}

std::string text_frame(std::string_view label, std::string_view text, std::string_view id) {
  return str("<pre", id.empty() ? "" : " id=\"", id, id.empty() ? "" : "\"", reached(label), '>', escaped(text), "</pre>\n");
}

}  // namespace tessera
