#include "train/report/html/bars.h"

#include <algorithm>
#include <cmath>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/plot/drawing.h"
#include "train/report/plot/markup.h"

namespace tessera {
namespace {

constexpr double kWidth = 640;
constexpr double kRowHeight = 46;  // the layer's name and its two bars
constexpr double kBarHeight = 11;
constexpr double kWhole = 1e15;  // larger numbers are written with a power of ten
constexpr double kNumbers = 110;  // pixels for the number after the longest bar

bool shown(const std::optional<double>& value) { return value && has_place(*value); }

// Whole numbers in full, others with four digits.
std::string number_text(double value) {
  return value == std::trunc(value) && value < kWhole ? formatted("%.0f", value) : formatted("%.4g", value);
}

std::string bar(const std::optional<double>& value, double greatest, double y, const char* kind, const std::string& unit) {
  if (!shown(value)) return {};
  const double width = greatest > 0 ? *value / greatest * (kWidth - kNumbers) : 0;
  return str("<rect class=\"", kind, "\" x=\"1.0\" y=\"", pixels(y), "\" width=\"", pixels(width), "\" height=\"",
             pixels(kBarHeight), "\"/>\n<text class=\"small\" x=\"", pixels(width + 7), "\" y=\"", pixels(y + kBarHeight - 1),
             "\">", number_text(*value), unit.empty() ? "" : " ", escaped(unit), "</text>\n");
}

}  // namespace

std::string bars_html(const BarChart& chart) {
  double greatest = 0;
  bool any = false;
  for (const BarPair& pair : chart.pairs) {
    for (const std::optional<double>& value : {pair.dense, pair.compressed}) {
      if (!shown(value)) continue;
      greatest = std::max(greatest, *value);
      any = true;
    }
  }
  if (!any) return {};
  std::string body, description;
  double y = 0;
  for (const BarPair& pair : chart.pairs) {
    body += str("<text x=\"1.0\" y=\"", pixels(y + 14), "\">", escaped(pair.label), "</text>\n");
    body += bar(pair.dense, greatest, y + 18, "dense", chart.unit);
    body += bar(pair.compressed, greatest, y + 18 + kBarHeight, "compressed", chart.unit);
    const auto told = [](const std::optional<double>& value) { return shown(value) ? number_text(*value) : std::string("-"); };
    description += str(description.empty() ? "" : "; ", pair.label, ": ", told(pair.dense), " to ", told(pair.compressed));
    y += kRowHeight;
  }
  const std::string title = chart.unit.empty() ? chart.title : str(chart.title, ", ", chart.unit);
  return str("<figure>\n<figcaption>", escaped(title),
             ": <span class=\"key dense\"></span> dense, <span class=\"key compressed\"></span> compressed</figcaption>\n",
             scroll_frame(title, svg_in_page(kWidth, y, chart.id, title, description + ".", body)), "</figure>\n");
}

}  // namespace tessera
