#include "train/report/html/html_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/plot/axis.h"
#include "train/report/plot/markup.h"

namespace tessera {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kLatex{{{"\\", "\\textbackslash{}"},
                                                                                {"{", "\\{"},
                                                                                {"}", "\\}"},
                                                                                {"&", "\\&"},
                                                                                {"%", "\\%"},
                                                                                {"$", "\\$"},
                                                                                {"#", "\\#"},
                                                                                {"_", "\\_"},
                                                                                {"~", "\\textasciitilde{}"},
                                                                                {"^", "\\textasciicircum{}"},
                                                                                {"<", "\\textless{}"},
                                                                                {">", "\\textgreater{}"},
                                                                                {"\n", " "},
                                                                                {"±", "$\\pm$"},
                                                                                {"→", "$\\to$"}}};

// Without JavaScript there is no sorting. The script enables the button.
std::string header(const HtmlColumn& column) {
  return str("<th scope=\"col\" aria-sort=\"none\"", column.number ? " class=\"number\"" : "",
             "><button type=\"button\" class=\"sort\" disabled>", escaped(column.name), "</button></th>");
}

std::string cell(const HtmlColumn& column, const HtmlCell& cell, bool first) {
  const char* const tag = first ? "th" : "td";
  std::string attributes = first ? " scope=\"row\"" : "";
  if (column.number) {
    const bool known = cell.number && has_place(*cell.number);
    attributes += str(" class=\"number\" data-sort=\"", known ? shortest(*cell.number) : std::string(), '"');
  }
  return str('<', tag, attributes, '>', escaped(cell.text), "</", tag, '>');
}

}  // namespace

std::string latex_escaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto found = std::ranges::find_if(kLatex, [&](const auto& entry) { return text.substr(i).starts_with(entry.first); });
    if (found == kLatex.end()) {
      out += text[i++];
    } else {
      out += found->second;
      i += found->first.size();
    }
  }
  return out;
}

std::string to_latex(const HtmlTable& table) {
  std::string kinds, heads;
  for (const HtmlColumn& column : table.columns) {
    kinds += column.number ? 'r' : 'l';
    heads += str(heads.empty() ? "" : " & ", latex_escaped(column.name));
  }
  std::string text = str("\\begin{tabular}{", kinds, "}\n\\toprule\n", heads, " \\\\\n\\midrule\n");
  for (const std::vector<HtmlCell>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += str(i == 0 ? "" : " & ", latex_escaped(row[i].text));
    text += " \\\\\n";
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string to_html(const HtmlTable& table) {
  std::string body =
      str("\n<table class=\"sortable\" id=\"", table.id, "\">\n<caption>", escaped(table.caption), "</caption>\n<thead>\n<tr>");
  for (const HtmlColumn& column : table.columns) body += header(column);
  body += "</tr>\n</thead>\n<tbody>\n";
  for (const std::vector<HtmlCell>& row : table.rows) {
    body += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) body += cell(table.columns[i], row[i], i == 0);
    body += "</tr>\n";
  }
  return str(scroll_frame(table.caption, body + "</tbody>\n</table>\n"),
             "<div class=\"latex\"><button type=\"button\" class=\"copy\" data-table=\"", table.id,
             "\" disabled>Copy as LaTeX</button> <span role=\"status\"></span>\n"
             "<details><summary>The table as LaTeX</summary>\n",
             text_frame(table.caption + " as LaTeX", to_latex(table), table.id + "-latex"), "</details></div>\n");
}

}  // namespace tessera
