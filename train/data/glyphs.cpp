#include "train/data/glyphs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/cpu/parallel.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera {
namespace {

struct Point {
  float x = 0;
  float y = 0;
};
using Polyline = std::vector<Point>;
using Drawing = std::vector<Polyline>;

constexpr float kPi = std::numbers::pi_v<float>;
constexpr std::size_t kPixels = kGlyphSide * kGlyphSide;
constexpr std::int64_t kTrainCount = 10000;
constexpr std::int64_t kTestCount = 2000;

// The random numbers of one image, drawn in a fixed sequence.
class Draws {
 public:
  Draws(RngStream stream, std::int64_t image) : stream_(stream), image_(static_cast<std::uint64_t>(image)) {}

  float uniform(float low, float high) { return low + (high - low) * to_unit_float(next()); }
  bool chance(float probability) { return uniform(0, 1) < probability; }
  std::uint32_t next() {
    if (used_ == 4) {
      words_ = random_words(stream_, image_, block_++);
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  RngStream stream_;
  std::uint64_t image_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = 4;
};

Polyline arc(float radius, float radius_end, float from, float to, int pieces) {
  Polyline line;
  for (int i = 0; i <= pieces; ++i) {
    const float t = static_cast<float>(i) / static_cast<float>(pieces);
    const float r = radius + (radius_end - radius) * t;
    const float angle = from + (to - from) * t;
    line.push_back({r * std::cos(angle), r * std::sin(angle)});
  }
  return line;
}

Polyline wave() {
  Polyline line;
  for (int i = 0; i <= 14; ++i) {
    const float t = static_cast<float>(i) / 7.0f - 1.0f;
    line.push_back({t, 0.45f * std::sin(2 * kPi * t)});
  }
  return line;
}

// The symbols in the square [-1, 1]^2, y downwards.
std::array<Drawing, kGlyphClasses> make_symbols() {
  return {{
      {arc(0.85f, 0.85f, 0, 2 * kPi, 16)},  // circle
      {{{-0.75f, -0.75f}, {0.75f, -0.75f}, {0.75f, 0.75f}, {-0.75f, 0.75f}, {-0.75f, -0.75f}}},  // square
      {{{0, -0.9f}, {0.9f, 0.7f}, {-0.9f, 0.7f}, {0, -0.9f}}},  // triangle
      {{{-0.75f, -0.75f}, {0.75f, 0.75f}}, {{0.75f, -0.75f}, {-0.75f, 0.75f}}},  // cross
      {{{-0.95f, 0}, {0.95f, 0}}, {{0, -0.95f}, {0, 0.95f}}},  // plus
      {{{-0.7f, -0.8f}, {0.7f, -0.8f}, {-0.7f, 0.8f}, {0.7f, 0.8f}}},  // zigzag
      {arc(0.1f, 0.95f, 0, 4 * kPi, 24)},  // spiral
      {{{-0.85f, -0.8f}, {0.85f, -0.8f}}, {{0, -0.8f}, {0, 0.95f}}},  // tee
      {{{0, 0.95f}, {0, -0.9f}}, {{-0.6f, -0.3f}, {0, -0.9f}, {0.6f, -0.3f}}},  // arrow
      {wave()},  // wave
  }};
}

const Drawing& symbol(std::size_t label) {
  static const std::array<Drawing, kGlyphClasses> symbols = make_symbols();
  return symbols[label];
}

// Random rotation, shear, scale and translation of a symbol, plus a random shift (wobble) of each corner of a stroke.
struct Placement {
  float xx, xy, yx, yy, x0, y0, wobble;

  explicit Placement(Draws& draw) {
    const float angle = draw.uniform(-0.25f, 0.25f);
    const float shear = draw.uniform(-0.2f, 0.2f);
    const float size = draw.uniform(7.5f, 10.5f);
    const float width = size * draw.uniform(0.8f, 1.1f);
    xx = width * std::cos(angle);
    yx = width * std::sin(angle);
    xy = size * (shear * std::cos(angle) - std::sin(angle));
    yy = size * (shear * std::sin(angle) + std::cos(angle));
    const float slack = std::max(0.0f, 0.5f * static_cast<float>(kGlyphSide) - size);
    x0 = 0.5f * kGlyphSide + draw.uniform(-slack, slack);
    y0 = 0.5f * kGlyphSide + draw.uniform(-slack, slack);
    wobble = 0.04f * size;
  }

  Point operator()(Point p, Draws& draw) const {
    return {xx * p.x + xy * p.y + x0 + draw.uniform(-wobble, wobble), yx * p.x + yy * p.y + y0 + draw.uniform(-wobble, wobble)};
  }
};

using Canvas = std::array<float, kPixels>;

// Raises pixels to the coverage of a stroke with round ends. Coverage falls from 1 to 0 over one pixel at distance `radius`.
void stroke(Canvas& canvas, Point a, Point b, float radius, float ink) {
  const float reach = radius + 0.5f;
  const auto pixel = [](float at) { return std::clamp(static_cast<int>(std::floor(at)), 0, static_cast<int>(kGlyphSide) - 1); };
  const int left = pixel(std::min(a.x, b.x) - reach);
  const int right = pixel(std::max(a.x, b.x) + reach);
  const int top = pixel(std::min(a.y, b.y) - reach);
  const int bottom = pixel(std::max(a.y, b.y) + reach);
  const float dx = b.x - a.x;
  const float dy = b.y - a.y;
  const float scale = 1.0f / std::max(dx * dx + dy * dy, 1e-6f);
  for (int row = top; row <= bottom; ++row) {
    float* pixels = canvas.data() + row * kGlyphSide;
    const float py = static_cast<float>(row) + 0.5f - a.y;
    for (int column = left; column <= right; ++column) {
      const float px = static_cast<float>(column) + 0.5f - a.x;
      const float along = std::clamp((px * dx + py * dy) * scale, 0.0f, 1.0f);
      const float ox = px - along * dx;
      const float oy = py - along * dy;
      const float coverage = std::clamp(reach - std::sqrt(ox * ox + oy * oy), 0.0f, 1.0f);
      pixels[column] = std::max(pixels[column], ink * coverage);
    }
  }
}

void draw_symbol(Canvas& canvas, const Drawing& drawing, Draws& draw) {
  const Placement place(draw);
  const float radius = draw.uniform(0.7f, 1.5f);
  for (const Polyline& line : drawing) {
    Point from = place(line.front(), draw);
    for (std::size_t i = 1; i < line.size(); ++i) {
      const Point to = place(line[i], draw);
      stroke(canvas, from, to, radius, 1.0f);
      from = to;
    }
  }
}

// Draws short strokes at random places, fainter than the symbol. A classifier must learn to ignore them.
void draw_distractors(Canvas& canvas, Draws& draw) {
  constexpr auto kSide = static_cast<float>(kGlyphSide);
  const int count = static_cast<int>(draw.uniform(0, 3));
  for (int i = 0; i < count; ++i) {
    const Point from{draw.uniform(0, kSide), draw.uniform(0, kSide)};
    const float angle = draw.uniform(0, 2 * kPi);
    const float length = draw.uniform(3, 7);
    const Point to{from.x + length * std::cos(angle), from.y + length * std::sin(angle)};
    stroke(canvas, from, to, draw.uniform(0.4f, 1.0f), draw.uniform(0.4f, 0.9f));
  }
}

// Sometimes erases a small square to the background.
void erase_patch(Canvas& canvas, Draws& draw) {
  if (!draw.chance(0.4f)) return;
  const int side = static_cast<int>(draw.uniform(4, 7));
  const int top = static_cast<int>(draw.uniform(0, static_cast<float>(kGlyphSide - side)));
  const int left = static_cast<int>(draw.uniform(0, static_cast<float>(kGlyphSide - side)));
  for (int row = top; row < top + side; ++row) std::fill_n(canvas.data() + row * kGlyphSide + left, side, 0.0f);
}

// Scales ink to the image's contrast and adds noise. The sum of the four bytes of a random word is close enough to normal.
void expose(const Canvas& canvas, Draws& draw, std::span<std::uint8_t> image) {
  const float background = draw.uniform(10, 70);
  const float contrast = draw.uniform(90, 180);
  const float noise = draw.uniform(5, 22) / 148.0f;  // 148 = standard deviation of the sum of four uniform bytes
  for (std::size_t i = 0; i < kPixels; ++i) {
    const std::uint32_t word = draw.next();
    const auto sum = static_cast<float>((word & 255u) + ((word >> 8) & 255u) + ((word >> 16) & 255u) + (word >> 24));
    const float value = background + contrast * canvas[i] + noise * (sum - 510.0f);
    image[i] = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
  }
}

RngStream stream_of(std::uint64_t seed, std::string_view split) { return {seed, "glyphs", split}; }

void draw_image(RngStream stream, std::int64_t index, std::span<std::uint8_t> image) {
  Draws draw(stream, index);
  Canvas canvas{};
  draw_symbol(canvas, symbol(static_cast<std::size_t>(index % kGlyphClasses)), draw);
  draw_distractors(canvas, draw);
  erase_patch(canvas, draw);
  expose(canvas, draw, image);
}

}  // namespace

void draw_glyph(std::uint64_t seed, std::string_view split, std::int64_t index, std::span<std::uint8_t> image) {
  TESSERA_CHECK(image.size() == kPixels, ShapeError, "draw_glyph: image has ", image.size(), " bytes; needs ", kPixels);
  draw_image(stream_of(seed, split), index, image);
}

MemoryDataset make_glyphs(std::uint64_t seed, std::string_view split, std::int64_t count) {
  MemoryDataset dataset;
  dataset.name = "glyphs";
  dataset.classes = {"circle", "square", "triangle", "cross", "plus", "zigzag", "spiral", "tee", "arrow", "wave"};
  dataset.images = Tensor::empty({count, kGlyphSide, kGlyphSide, 1}, DType::u8);
  dataset.labels = Tensor::empty({count}, DType::i64);
  std::uint8_t* pixels = dataset.images.data<std::uint8_t>();
  std::int64_t* labels = dataset.labels.data<std::int64_t>();
  const RngStream stream = stream_of(seed, split);
  cpu::parallel_for(count, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      draw_image(stream, i, {pixels + static_cast<std::size_t>(i) * kPixels, kPixels});
      labels[i] = i % kGlyphClasses;
    }
  });
  return dataset;
}

void GlyphsConfig::fields(Fields& f) {
  image_fields(f);
  f.add("count", count,
        {.help = "training images that glyphs draws", .range = at_least(1), .example = "1000", .observable = "plan"});
  f.add("test_count", test_count,
        {.help = "test images that glyphs draws", .range = at_least(1), .example = "200", .observable = "plan"});
}

ImageSplits GlyphsConfig::read_images(const std::string&, std::uint64_t seed, std::vector<BadFile>*) const {
  return split_in_memory(make_glyphs(seed, "train", count.value_or(kTrainCount)),
                         make_glyphs(seed, "test", test_count.value_or(kTestCount)), val, seed);
}

}  // namespace tessera
