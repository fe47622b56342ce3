// Plots: axes, the Pareto front, curves with gaps, bars. The tests count the drawn elements.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/support/error.h"
#include "train/report/html/bars.h"
#include "train/report/html/curves.h"
#include "train/report/plot/markup.h"
#include "train/report/plot/scatter.h"

namespace tessera::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

CurveChart chart(std::vector<CurvePoint> points, std::vector<StageSpan> stages = {}) {
  return {.id = "c", .title = "Loss", .curves = {{.name = "run", .points = std::move(points), .stages = std::move(stages)}}};
}

ScatterPoint point(double ms, double value) { return {.name = "p", .x = {ms, ms, ms}, .y = value}; }

TEST(Axis, GoesBetweenRoundNumbersAroundTheValues) {
  const Axis axis = Axis::over(3, 47, 1);
  EXPECT_LE(axis.low, 3);
  EXPECT_GE(axis.high, 47);
  EXPECT_EQ(axis.step, 10);
  EXPECT_EQ(axis.ticks().front().text, "-10");
  EXPECT_DOUBLE_EQ(axis.share(axis.low), 0);
  EXPECT_DOUBLE_EQ(axis.share(axis.high), 1);
}

TEST(Axis, OfOneValueHasALength) {
  for (const double value : {0.0, 5.0, -3.0, 1e-6, 1e12}) {
    const double span = value == 0 ? 1 : std::abs(value) * 0.02;
    for (const double padding : {0.0, 0.1}) {
      const Axis axis = Axis::over(value, value, span, padding);
      EXPECT_LT(axis.low, axis.high) << value;
      EXPECT_GE(axis.share(value), -1e-9) << value;
      EXPECT_LE(axis.share(value), 1 + 1e-9) << value;
      EXPECT_LT(axis.ticks().size(), 20u) << value;
    }
  }
}

TEST(Axis, BetweenWholeNumbersEndsThere) {
  const Axis axis = Axis::between(245, 801);
  EXPECT_EQ(axis.low, 245);
  EXPECT_EQ(axis.high, 801);
  EXPECT_EQ(axis.ticks().front().text, "400");
  EXPECT_EQ(axis.ticks().back().text, "800");
  EXPECT_LT(Axis::between(7, 7).low, Axis::between(7, 7).high);
}

TEST(Axis, ByPowersHasEqualStepsForEqualRatios) {
  const Axis axis = Axis::by_powers(0.02, 500);
  EXPECT_DOUBLE_EQ(axis.low, 0.01);
  EXPECT_DOUBLE_EQ(axis.high, 1000);
  EXPECT_NEAR(axis.share(1) - axis.share(0.1), 0.2, 1e-12);
  EXPECT_EQ(axis.ticks().size(), 6u);
  EXPECT_EQ(Axis::by_powers(1, 10).ticks().size(), 4u) << "1, 2, 5, 10";
  EXPECT_LT(Axis::by_powers(7, 7).low, Axis::by_powers(7, 7).high);
  EXPECT_LE(Axis::by_powers(1e-90, 1e90).ticks().size(), 10u);
}

TEST(Markup, EscapesWhatHtmlAndXmlRead) {
  EXPECT_EQ(escaped("<script>alert(\"a\" & 'b')</script>\n"),
            "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;\n");
  EXPECT_EQ(escaped(std::string("a\0b\x1b", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(escaped("größer"), "größer");
}

TEST(ParetoFront, HoldsWhatNoneBeats) {
  const std::vector<ScatterPoint> points{point(3, 90), point(1, 70), point(2, 65), point(2, 80), point(4, 90), point(3, 90)};
  EXPECT_EQ(pareto_front(points, true), (std::vector<std::size_t>{1, 3, 0}));
  EXPECT_EQ(pareto_front(points, false), (std::vector<std::size_t>{1, 2})) << "less is better";
  EXPECT_TRUE(pareto_front({}, true).empty());
}

TEST(Scatter, DrawsTheFrontOnlyWhereItIsAsked) {
  const Scatter scatter{.title = "t", .points = {point(1, 70), point(2, 80)}};
  const std::string with = draw_with_front(scatter, true).in_page("s", "title", "words");
  EXPECT_EQ(count(with, "class=\"front\""), 1u);
  EXPECT_EQ(count(with, "<circle"), 2u);
  EXPECT_EQ(count(draw(scatter).alone("t"), "<polyline"), 0u);
  EXPECT_EQ(count(draw_with_front({.title = "t", .points = {point(1, 70)}}, true).alone("t"), "<polyline"), 0u) << "one point";
}

TEST(Curves, HaveALineATitleAndADescription) {
  const std::string html = curves_html(chart({{1, 3.0}, {2, 2.0}, {3, 1.0}}));
  EXPECT_EQ(count(html, "<polyline"), 1u);
  EXPECT_EQ(count(html, "<circle"), 3u);
  EXPECT_EQ(count(html, "role=\"img\" aria-labelledby=\"c-title c-desc\""), 1u);
  EXPECT_NE(html.find("<desc id=\"c-desc\">run: 3 at step 1, 1 at step 3.</desc>"), std::string::npos) << html;
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(Curves, OfOnePointAreADot) {
  const std::string html = curves_html(chart({{7, 0.5}}));
  EXPECT_EQ(count(html, "<polyline"), 0u);
  EXPECT_EQ(count(html, "<circle"), 1u);
  EXPECT_EQ(html.find("nan"), std::string::npos) << html;
}

TEST(Curves, NotANumberIsAGap) {
  const std::string html =
      curves_html(chart({{1, 3.0}, {2, 2.0}, {3, kNan}, {4, kInf}, {5, 1.0}, {6, 2.0}, {7, -kInf}, {8, 4.0}}));
  EXPECT_EQ(count(html, "<polyline"), 2u);
  EXPECT_EQ(count(html, "<circle"), 5u);
  EXPECT_NE(html.find("3 of 8 values are NaN or infinite"), std::string::npos) << html;
  const std::string none = curves_html(chart({{1, kNan}, {2, kInf}}));
  EXPECT_NE(none.find("all values are NaN or infinite"), std::string::npos);
  EXPECT_EQ(count(none, "<svg"), 0u);
}

TEST(Curves, GoOverTheStepsThatTheyAreAskedFor) {
  CurveChart asked = chart({{5, 1.0}, {6, 2.0}});
  asked.steps = {0, 10};
  EXPECT_NE(curves_html(asked).find("points=\"340.0,"), std::string::npos) << "the middle: " << curves_html(asked);
}

TEST(Curves, GoByPowersOfTenWhereValuesAreFarApart) {
  EXPECT_NE(curves_html(chart({{1, 0.001}, {2, 1.0}})).find("(powers of ten)"), std::string::npos);
  EXPECT_EQ(curves_html(chart({{1, 0.0}, {2, 1.0}})).find("(powers of ten)"), std::string::npos) << "0 has no power";
  EXPECT_EQ(curves_html(chart({{1, 0.01}, {2, 1.0}})).find("(powers of ten)"), std::string::npos);
}

TEST(Curves, MarkAndNameTheStages) {
  const std::vector<StageSpan> stages{{"dense", 10}, {"factorised", 11}, {"tuned", 20}};
  const std::string html = curves_html(chart({{1, 3.0}, {10, 2.0}, {20, 1.0}}, stages));
  EXPECT_EQ(count(html, "class=\"border\""), 2u);
  EXPECT_EQ(count(html, "class=\"stage\""), 3u);
  EXPECT_NE(html.find(">factorised</text>"), std::string::npos);
}

TEST(Curves, RunsOfOtherStagesNameTheirOwn) {
  CurveChart both = chart({{1, 3.0}, {20, 1.0}}, {{"dense", 10}, {"tuned", 20}});
  both.curves.push_back({.name = "other", .series = 1, .points = {{1, 2.0}, {20, 1.5}}, .stages = {{"dense", 20}}});
  const std::string html = curves_html(both);
  EXPECT_NE(html.find(">run: tuned</text>"), std::string::npos) << html;
  EXPECT_NE(html.find(">other: dense</text>"), std::string::npos);
  EXPECT_NE(html.find("curve c1 d1"), std::string::npos);
  both.curves[1].stages = both.curves[0].stages;
  EXPECT_NE(curves_html(both).find(">tuned</text>"), std::string::npos) << "alike, so named once";
}

TEST(Curves, ThinningKeepsTheExtremesAndTheGaps) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({i, std::sin(i * 0.01)});
  points[5000].value = 100;
  points[7000].value = kNan;
  const std::vector<CurvePoint> thin = thinned(points);
  EXPECT_LE(thin.size(), 1200u);
  const auto has = [&](const auto& wanted) { return std::any_of(thin.begin(), thin.end(), wanted); };
  EXPECT_TRUE(has([](const CurvePoint& p) { return p.value == 100; }));
  EXPECT_TRUE(has([](const CurvePoint& p) { return std::isnan(p.value); }));
  for (std::size_t i = 0; i + 1 < thin.size(); ++i) {
    const bool gap = std::isnan(thin[i].value);  // the gap comes before its interval
    EXPECT_TRUE(gap || thin[i].step <= thin[i + 1].step + 25) << i;
  }
  points.resize(800);
  EXPECT_EQ(thinned(points).size(), 800u) << "few enough to draw each";
}

TEST(Bars, AreTwoForALayerAndNoneWithoutANumber) {
  const std::string html =
      bars_html({"b", "Time", "ms", {{"conv<1>", 2.0, 1.0}, {"conv2", 4.0, std::nullopt}, {"fc", kNan, {}}}});
  EXPECT_EQ(count(html, "<rect"), 3u);
  EXPECT_NE(html.find(">conv&lt;1&gt;</text>"), std::string::npos) << html;
  EXPECT_NE(html.find("width=\"530.0\""), std::string::npos) << "the longest";
  EXPECT_NE(html.find("width=\"265.0\""), std::string::npos);
  EXPECT_NE(html.find("conv2: 4 to -"), std::string::npos);
  EXPECT_EQ(bars_html({"b", "Time", "ms", {{"fc", std::nullopt, std::nullopt}}}), "");
  EXPECT_EQ(bars_html({"b", "Time", "ms", {}}), "");
  EXPECT_EQ(count(bars_html({"b", "MACs", "", {{"table", 0.0, 0.0}}}), "width=\"0.0\""), 2u);
}

}  // namespace
}  // namespace tessera::testing
