// A table as HTML, whose rows a click or a key sorts, and as LaTeX.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct HtmlCell {
  std::string text;
  std::optional<double> number{};  // that a column of numbers is sorted by; without one the row comes last
};

struct HtmlColumn {
  std::string name;
  bool number = false;
};

struct HtmlTable {
  std::string id;  // in the page
  std::string caption;
  std::vector<HtmlColumn> columns{};
  std::vector<std::vector<HtmlCell>> rows{};  // each with a cell for each column; the first is its header
};

std::string latex_escaped(std::string_view text);

// A tabular with booktabs' rules, a line per row.
std::string to_latex(const HtmlTable& table);

// Below it what to_latex() gives, folded, and the button that copies it.
std::string to_html(const HtmlTable& table);

}  // namespace tessera
