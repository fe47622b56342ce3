// The pages of report in headless Chromium: what the script does, what it prints on the console, and what is visible.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/reported_run.h"
#include "tests/support/python.h"
#include "train/data/image.h"
#include "train/report/html/html_table.h"

namespace tessera::testing {
namespace {

struct Colour {
  int red, green, blue;
};
constexpr Colour kDense{0xd5, 0x5e, 0x00}, kCompressed{0x00, 0x72, 0xb2};  // colours of points in plots

constexpr int kWidth = 1280, kHeight = 9000, kPhone = 390;  // in pixels

struct Box {
  std::int64_t left, top, right, bottom;
};

class ReportInABrowser : public ReportedRun {
 protected:
  void SetUp() override {
    if (std::system("chromium --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no chromium";
  }

  static std::string table() { return page({std::string(TESSERA_PAGES) + "/../../configs/tables/results/admm_resnet8.json"}); }

  // Chromium's output with these options, for the page with `script` appended. A browser's window has a minimum width, so a
  // phone's page is a frame of `width` in an outer page, whose title takes the inner page's message.
  static std::string browse(std::string page, const std::string& script, const std::string& options, int width = 0) {
    const std::string end = "</body>";
    std::string file = *folder_ / "scripted.html";
    page.replace(page.rfind(end), end.size(), str("<script>", script, "</script></body>"));
    write_bytes(file, page);
    if (width > 0) {
      file = *folder_ / "phone.html";
      write_bytes(file,
                  str("<!DOCTYPE html><html><head><title>{}</title></head><body style=\"margin: 0\"><script>"
                      "window.onmessage = function (e) { document.title = e.data; };</script><iframe width=\"",
                      width, "\" height=\"", kHeight, "\" style=\"border: 0\" src=\"scripted.html\"></iframe></body></html>"));
    }
    return output_of(
        str("chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --user-data-dir=",
            *folder_ / "chromium", " --window-size=", kWidth, ',', kHeight, ' ', options, " file://", file));
  }
  // The value of `told` after `script` has run.
  static Value told_by(const std::string& page, const std::string& script, int width = 0) {
    const std::string dom =
        browse(page,
               str("var told = {};", script,
                   "var text = JSON.stringify(told); document.title = text; window.parent.postMessage(text, '*');"),
               "--virtual-time-budget=2000 --dump-dom 2>/dev/null", width);
    const std::size_t begin = dom.find("<title>") + 7, length = dom.find("</title>") - begin;
    std::string text = dom.substr(begin, length);
    for (const auto& [name, character] : {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&amp;", "&"}}) {
      for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
        text.replace(at, std::string_view(name).size(), character);
    }
    return parse_json(text, "title");
  }
  // "told": the value of `expression` after these keys, the first sent to the element of `selector`. "console": its output.
  static Value pressed(const std::string& page, const std::string& expression, const std::string& selector,
                       const std::string& keys) {
    const std::string file = *folder_ / "pressed.html";
    write_bytes(file, page);
    const std::string told = output_of(str("python3 ", TESSERA_PAGES, "/press_keys.py ", file, ' ', *folder_ / "chromium", ' ',
                                           shell_word(expression), ' ', shell_word(selector), ' ', keys));
    EXPECT_TRUE(told.starts_with("{")) << told;
    return parse_json(told, "press_keys.py");
  }
  static Image seen(const std::string& page, int width = 0) {
    const std::string file = *folder_ / "seen.png";
    std::filesystem::remove(file);
    browse(page, "", str("--screenshot=", file, " 2>&1"), width);
    return read_image(file);
  }
};

// The number of pixels in a box that are not the page's white.
double ink(const Image& image, const Box& box) {
  std::int64_t count = 0;
  for (std::int64_t y = box.top; y < box.bottom; ++y) {
    for (std::int64_t x = box.left; x < box.right; ++x) {
      const std::uint8_t* const pixel = &image.pixels[static_cast<std::size_t>(3 * (y * image.width + x))];
      count += pixel[0] < 200 || pixel[1] < 200 || pixel[2] < 200 ? 1 : 0;
    }
  }
  return static_cast<double>(count) / static_cast<double>((box.bottom - box.top) * (box.right - box.left));
}

std::int64_t pixels_of(const Image& image, const Box& box, const Colour& colour) {
  std::int64_t count = 0;
  for (std::int64_t y = box.top; y < box.bottom; ++y) {
    for (std::int64_t x = box.left; x < box.right; ++x) {
      const std::uint8_t* const pixel = &image.pixels[static_cast<std::size_t>(3 * (y * image.width + x))];
      count += pixel[0] == colour.red && pixel[1] == colour.green && pixel[2] == colour.blue ? 1 : 0;
    }
  }
  return count;
}

TEST_F(ReportInABrowser, OpensForThePrinter) {
  const Value told = told_by(page({run()}), R"(
    var shut = function () { return document.querySelectorAll('details:not([open])').length; };
    document.querySelector('details').open = true;
    told.before = shut();
    window.dispatchEvent(new Event('beforeprint'));
    told.printing = shut();
    window.dispatchEvent(new Event('afterprint'));
    told.after = shut();
  )");
  EXPECT_GT(told.at("before").as_int(), 0);
  EXPECT_EQ(told.at("printing").as_int(), 0);
  EXPECT_EQ(told.at("after").as_int(), told.at("before").as_int());
}

// The page after clicks on the header of the stages table's column of steps.
TEST_F(ReportInABrowser, Sorts) {
  const std::string dom =
      browse(page({run()}), "var b = document.querySelectorAll('#stages-0 button.sort')[1]; b.click(); b.click();",
             "--dump-dom 2>/dev/null");
  EXPECT_EQ(dom.find("disabled=\"", dom.find("<body")), std::string::npos) << "the script set the buttons free";
  expect_in(dom, "aria-sort=\"descending\"");
  const std::string rows = dom.substr(dom.find("id=\"stages-0\""));
  ASSERT_NE(rows.find("scope=\"row\">factored<"), std::string::npos);
  EXPECT_LT(rows.find("scope=\"row\">dense<"), rows.find("scope=\"row\">factored<"));
  EXPECT_LT(rows.find("scope=\"row\">tuned<"), rows.find("scope=\"row\">factored<")) << "which has no steps";
}

// Tab moves from header to header. Enter and the space bar sort by the focused header.
TEST_F(ReportInABrowser, SortsByTheKeyboard) {
  const std::string expression = R"((function () {
    var table = document.getElementById('stages-0');
    return {sorted: Array.prototype.map.call(table.tHead.rows[0].cells, function (c) { return c.getAttribute('aria-sort'); }),
            steps: Array.prototype.map.call(table.tBodies[0].rows, function (r) { return Number(r.cells[1].textContent); }),
            focus: document.activeElement.textContent};
  })())";
  const auto after = [&](const std::string& keys) {
    const Value all = pressed(page({run()}), expression, "#stages-0 button.sort", keys);
    EXPECT_EQ(to_json(all.at("console")), "[]");
    return all.at("told");
  };
  const auto steps_of = [](const Value& told) {
    std::vector<std::int64_t> steps;
    for (const Value& value : told.at("steps").as_list()) steps.push_back(value.as_int());
    return steps;
  };
  const Value before = after("Tab");
  EXPECT_EQ(before.at("focus").as_string(), "steps");
  EXPECT_EQ(before.at("sorted").as_list().at(1).as_string(), "none") << "Tab alone sorts nothing";
  EXPECT_FALSE(std::ranges::is_sorted(steps_of(before)));
  const Value once = after("Tab Enter");
  EXPECT_EQ(once.at("focus").as_string(), "steps");
  EXPECT_EQ(once.at("sorted").as_list().at(1).as_string(), "ascending");
  EXPECT_TRUE(std::ranges::is_sorted(steps_of(once)));
  const Value twice = after("Tab Enter Space");
  EXPECT_EQ(twice.at("sorted").as_list().at(1).as_string(), "descending");
  EXPECT_TRUE(std::ranges::is_sorted(steps_of(twice), std::greater<>()));
}

// Copies with a clipboard that the script provides, then with one that refuses, then with none. `told` holds the order of the
// rows at the click, and the copied text.
constexpr const char* kCopies = R"(
  var table = document.getElementById('stages-0'), pre = document.getElementById('stages-0-latex');
  var sort = table.querySelectorAll('button.sort')[1], copy = document.querySelector('button.copy[data-table="stages-0"]');
  var said = copy.parentNode.querySelector('[role="status"]');
  function clipboard(value) { Object.defineProperty(navigator, 'clipboard', {value: value, configurable: true}); }
  function copied(name) {
    told[name] = {};
    copy.click();
    told[name].rows = Array.prototype.map.call(table.tBodies[0].rows, function (row) {
      return Array.prototype.map.call(row.cells, function (cell) { return cell.textContent; });
    });
    told[name].shown = pre.textContent;
    told[name].open = pre.parentNode.open;
    told[name].chosen = String(window.getSelection());
    told[name].status = said.textContent;
  }
  var last = {then: function (done) { done(); }};
  clipboard({writeText: function (text) { told.text = text; return last; }});
  copied('unsorted');
  told.unsorted.text = told.text;
  sort.click();
  copied('ascending');
  told.ascending.text = told.text;
  sort.click();
  copied('descending');
  told.descending.text = told.text;
  sort.click();
  clipboard({writeText: function () { return {then: function (done, failed) { failed(); }}; }});
  copied('closed');
  sort.click();
  pre.parentNode.open = false;
  clipboard(undefined);
  copied('none');
)";

// The LaTeX of these rows, with the text around the rows taken from `whole`.
std::string latex_of(const Value& rows, const std::string& whole) {
  const std::string rule = "\\midrule\n";
  std::string text = whole.substr(0, whole.find(rule) + rule.size());
  for (const Value& row : rows.as_list()) {
    std::string cells;
    for (const Value& cell : row.as_list()) cells += str(cells.empty() ? "" : " & ", latex_escaped(cell.as_string()));
    text += cells + " \\\\\n";
  }
  return text + whole.substr(whole.find("\\bottomrule"));
}

TEST_F(ReportInABrowser, CopiesTheTableAsItIsSortedNow) {
  const Value told = told_by(page({run()}), kCopies);
  std::vector<std::string> orders;
  for (const char* const name : {"unsorted", "ascending", "descending"}) {
    SCOPED_TRACE(name);
    const Value& copy = told.at(name);
    const std::string text = copy.at("text").as_string();
    EXPECT_TRUE(text.starts_with("\\begin{tabular}{lrr")) << text;
    EXPECT_TRUE(text.ends_with("\\bottomrule\n\\end{tabular}\n")) << text;
    EXPECT_EQ(copy.at("rows").as_list().size(), 5u);
    EXPECT_EQ(text, latex_of(copy.at("rows"), text));
    EXPECT_EQ(copy.at("status").as_string(), "Copied.");
    EXPECT_FALSE(copy.at("open").as_bool());
    orders.push_back(text);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
}

// The text is then shown and selected.
TEST_F(ReportInABrowser, CopiesByHandWhereTheClipboardIsClosed) {
  const Value told = told_by(page({run()}), kCopies);
  for (const auto& [name, order] : {std::pair("closed", "ascending"), {"none", "descending"}}) {
    SCOPED_TRACE(name);
    const Value& copy = told.at(name);
    const std::string text = told.at(order).at("text").as_string();
    EXPECT_EQ(copy.at("shown").as_string(), text);
    EXPECT_TRUE(copy.at("open").as_bool());
    EXPECT_EQ(copy.at("chosen").as_string() + '\n', text) << "a selection leaves out the last line's end";
    EXPECT_NE(copy.at("status").as_string(), "");
  }
}

TEST_F(ReportInABrowser, PrintsNothingOnTheConsole) {
  const auto console = [](const std::string& page, const std::string& script) {
    const std::string all = browse(page, script, "--enable-logging=stderr --dump-dom 2>&1 >/dev/null");
    return all.find(":CONSOLE") == std::string::npos ? "" : all;
  };
  const std::string press = R"(
    document.querySelectorAll('button').forEach(function (button) { button.click(); button.click(); });
    Object.defineProperty(navigator, 'clipboard', {value: undefined});
    document.querySelectorAll('button.copy').forEach(function (button) { button.click(); });
  )";
  for (const std::string& script : {std::string(), press}) {
    EXPECT_EQ(console(page({run()}), script), "");
    EXPECT_EQ(console(table(), script), "");
  }
  EXPECT_NE(console(table(), "missing();"), "") << "an error would be seen";
}

// On a phone every plot and table is wider than the page, so the keyboard must reach the scrolling parts.
TEST_F(ReportInABrowser, WhatScrollsHasATabStop) {
  for (const std::string& page : {page({run()}), table()}) {
    const Value told = told_by(page, R"(
      document.querySelectorAll('details').forEach(function (details) { details.open = true; });
      told.figures = 0;
      told.unreached = [];
      document.querySelectorAll('main *').forEach(function (e) {
        var scrolls = e.scrollWidth > e.clientWidth && /auto|scroll/.test(getComputedStyle(e).overflowX);
        if (!scrolls) return;
        if (e.closest('figure')) ++told.figures;
        e.focus();
        if (document.activeElement !== e || e.tabIndex !== 0) told.unreached.push(e.outerHTML.slice(0, 100));
      });
    )",
                               kPhone);
    EXPECT_GE(told.at("figures").as_int(), 2);
    EXPECT_EQ(to_json(told.at("unreached")), "[]");
  }
}

constexpr const char* kBoxes = R"(
  told.width = document.documentElement.clientWidth;
  told.scrolls = document.documentElement.scrollWidth;
  told.boxes = Array.prototype.map.call(document.querySelectorAll('h1, h2, .scroll, figure svg, button'), function (e) {
    var b = e.getBoundingClientRect(), frame = (e.closest('.scroll') || e).getBoundingClientRect();
    var part = e.closest('section');
    return {what: e.tagName.toLowerCase(), part: part ? part.getAttribute('aria-labelledby') : '',
            left: Math.ceil(b.left), top: Math.ceil(b.top),
            right: Math.floor(Math.min(b.right, frame.right)), bottom: Math.floor(b.bottom)};
  });
)";

// At the width of a desktop and of a phone only tables, in scrolling frames, are wider than the page.
TEST_F(ReportInABrowser, ShowsEachPartWithinThePage) {
  for (const auto& [frame, page] : {std::pair(0, page({run()})), {0, table()}, {kPhone, page({run()})}, {kPhone, table()}}) {
    SCOPED_TRACE(frame);
    const std::int64_t width = frame > 0 ? frame : kWidth;
    const Value told = told_by(page, kBoxes, frame);
    EXPECT_EQ(told.at("width").as_int(), width);
    EXPECT_EQ(told.at("scrolls").as_int(), width);
    const Image image = seen(page, frame);
    ASSERT_EQ(image.width, kWidth);
    std::map<std::string, int> shown;
    for (const Value& box : told.at("boxes").as_list()) {
      const Box place{box.at("left").as_int(), box.at("top").as_int(), box.at("right").as_int(), box.at("bottom").as_int()};
      if (place.right <= place.left) continue;  // hidden in a closed <details>
      const std::string what = box.at("what").as_string();
      SCOPED_TRACE(str(what, " at ", place.top));
      ASSERT_GE(place.left, 0);
      ASSERT_LE(place.right, width);
      ASSERT_LE(place.bottom, image.height);
      EXPECT_GT(ink(image, place), 0.002);
      EXPECT_LT(ink(image, place), 0.5);
      ++shown[what];
    }
    EXPECT_EQ(shown["h1"], 1);
    EXPECT_GE(shown["h2"], 3);
    EXPECT_GE(shown["svg"], 1);
    EXPECT_GE(shown["div"], 1) << "tables";
    EXPECT_GE(shown["button"], 1);
  }
}

// The colours distinguish dense from compressed networks, in the page of a table and of a run.
TEST_F(ReportInABrowser, DrawsDenseAndCompressedNetworksInTheirColours) {
  for (const auto& [page, least] : {std::pair(table(), 2), {page({run()}), 1}}) {
    const Value told = told_by(page, kBoxes);
    const Image image = seen(page);
    int plots = 0;
    for (const Value& box : told.at("boxes").as_list()) {
      if (box.at("what").as_string() != "svg" || box.at("part").as_string() != "speed") continue;
      const Box place{box.at("left").as_int(), box.at("top").as_int(), box.at("right").as_int(), box.at("bottom").as_int()};
      EXPECT_GT(pixels_of(image, place, kDense), 20) << place.top;
      EXPECT_GT(pixels_of(image, place, kCompressed), 40) << place.top;
      ++plots;
    }
    EXPECT_GE(plots, least);
  }
}

}  // namespace
}  // namespace tessera::testing
