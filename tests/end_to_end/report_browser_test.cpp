// report's pages in headless Chromium: what its script does, what it prints on the console, and what is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/reported_run.h"
#include "tests/support/python.h"
#include "train/data/image.h"

namespace tessera::testing {
namespace {

struct Colour {
  int red, green, blue;
};
constexpr Colour kDense{0xd5, 0x5e, 0x00}, kCompressed{0x00, 0x72, 0xb2};  // of points in plots

constexpr int kWidth = 1280, kHeight = 9000, kPhone = 390;  // pixels

struct Box {
  std::int64_t left, top, right, bottom;
};

class ReportInABrowser : public ReportedRun {
 protected:
  void SetUp() override {
    if (std::system("chromium --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no chromium";
  }

  static std::string table() { return page({std::string(TESSERA_PAGES) + "/../../configs/tables/results/admm_resnet8.json"}); }

  // What Chromium answers to these options, for the page with `script` behind its own. A browser's window has a least width, so
  // that the page of a phone is a frame of this width in another page, whose title is what the page in it has told.
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
  // What `script` leaves in `told`.
  static Value told_by(const std::string& page, const std::string& script, int width = 0) {
    const std::string dom =
        browse(page,
               str("var told = {};", script,
                   "var text = JSON.stringify(told); document.title = text; window.parent.postMessage(text, '*');"),
               "--virtual-time-budget=2000 --dump-dom 2>/dev/null", width);
    const std::size_t begin = dom.find("<title>") + 7, length = dom.find("</title>") - begin;
    return parse_json(dom.substr(begin, length), "title");
  }
  static Image seen(const std::string& page, int width = 0) {
    const std::string file = *folder_ / "seen.png";
    std::filesystem::remove(file);
    browse(page, "", str("--screenshot=", file, " 2>&1"), width);
    return read_image(file);
  }
};

// Pixels of a box that are not the page's white.
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

// After a click on the header of the stages' column of steps: what the script makes of the page.
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

TEST_F(ReportInABrowser, PrintsNothingOnTheConsole) {
  const auto console = [](const std::string& page, const std::string& script) {
    const std::string all = browse(page, script, "--enable-logging=stderr --dump-dom 2>&1 >/dev/null");
    return all.find(":CONSOLE") == std::string::npos ? "" : all;
  };
  EXPECT_EQ(console(page({run()}), ""), "");
  EXPECT_EQ(console(table(), ""), "");
  EXPECT_NE(console(table(), "missing();"), "") << "an error would be seen";
}

constexpr const char* kBoxes = R"(
  told.width = document.documentElement.clientWidth;
  told.scrolls = document.documentElement.scrollWidth;
  told.boxes = Array.prototype.map.call(document.querySelectorAll('h1, h2, .scroll, figure svg, button'), function (e) {
    var b = e.getBoundingClientRect(), frame = (e.closest('.scroll') || e).getBoundingClientRect();
    return {what: e.tagName.toLowerCase(), left: Math.ceil(b.left), top: Math.ceil(b.top),
            right: Math.floor(Math.min(b.right, frame.right)), bottom: Math.floor(b.bottom)};
  });
)";

// Wide as on a desk and narrow as on a phone: nothing but tables, in frames of their own, is wider than the page.
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
      if (place.right <= place.left) continue;  // behind a summary
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

// The colours tell dense from compressed networks.
TEST_F(ReportInABrowser, DrawsDenseAndCompressedNetworksInTheirColours) {
  const std::string page = table();
  const Value told = told_by(page, kBoxes);
  const Image image = seen(page);
  int plots = 0;
  for (const Value& box : told.at("boxes").as_list()) {
    if (box.at("what").as_string() != "svg") continue;
    const Box place{box.at("left").as_int(), box.at("top").as_int(), box.at("right").as_int(), box.at("bottom").as_int()};
    EXPECT_GT(pixels_of(image, place, kDense), 20) << place.top;
    EXPECT_GT(pixels_of(image, place, kCompressed), 40) << place.top;
    ++plots;
  }
  EXPECT_GE(plots, 2);
}

}  // namespace
}  // namespace tessera::testing
