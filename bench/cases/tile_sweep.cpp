#include "bench/cases/tile_sweep.h"

#include <algorithm>
#include <span>

namespace tessera::bench {
namespace {

constexpr std::int64_t kTileRounds = 3;

// Milliseconds per call of each tile.
std::vector<double> sweep_tiles(std::span<const Tile> tiles, Device device, std::size_t sets) {
  std::vector<Contestant> graphs;
  for (const Tile& tile : tiles) graphs.emplace_back(recorded(tile.side, device, sets, sets));
  std::vector<double> ms;
  for (const Samples& samples : time_in_turns(graphs, {.rounds = kTileRounds, .seconds = 0, .device = device, .alone = 0})) {
    ms.push_back(samples.median() / static_cast<double>(sets));
  }
  return ms;
}

Value tile_rows(std::span<const Tile> tiles, std::span<const double> ms) {
  Value::List rows;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    Value& row = rows.emplace_back(Value::map());
    row.set("name", tiles[i].side.name);
    row.set("ms", ms[i]);
    row.set("predicted_ms", tiles[i].seconds * 1e3);
  }
  return Value::list(std::move(rows));
}

}  // namespace

SweptCase with_swept_tiles(RotatedCase rotated, std::vector<Tile> tiles, Device device) {
  const std::vector<double> ms = sweep_tiles(tiles, device, rotated.sets);
  SweptCase swept{std::move(rotated), tile_rows(tiles, ms)};
  RotatedSide measured = tiles[static_cast<std::size_t>(std::ranges::min_element(ms) - ms.begin())].side;
  RotatedSide& predicted = tiles.front().side;
  measured.name = str("tile by the clock, ", measured.name);
  predicted.name = str("tile by the model, ", predicted.name);
  swept.rotated.ours.push_back(std::move(measured));
  swept.rotated.ours.push_back(std::move(predicted));
  return swept;
}

}  // namespace tessera::bench
