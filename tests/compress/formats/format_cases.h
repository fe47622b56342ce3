// What every format is tested with: a row for each kind of layer that it holds.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/shape.h"
#include "layers/ranks.h"
#include "layers/tt_modes.h"

namespace tessera::testing {

struct FormatCase {
  std::string format;
  Value dense;  // {kind: config}
  Shape input;
  std::vector<Ranks> ranks;  // legal, the last one of full rank
  Ranks illegal;
  std::string message;
};

inline void PrintTo(const FormatCase& c, std::ostream* out) { *out << c.format << ' ' << to_json(c.dense); }

inline std::vector<FormatCase> format_cases() {
  const auto config = [](const char* json) { return parse_json(json, "test"); };
  return {
      {"tucker2",
       config(R"({"conv2d": {"in": 5, "out": 7, "padding": 1}})"),
       {2, 7, 9, 5},
       {{{"out", 1}, {"in", 1}}, {{"out", 4}, {"in", 3}}, {{"out", 4}, {"in", 5}}, {{"out", 7}, {"in", 5}}},
       {{"out", 8}, {"in", 3}},
       "out rank is 8, the mode has size 7; legal range is 1..7"},
      {"tucker2",
       config(R"({"conv2d": {"in": 8, "out": 3, "kernel": [3, 5], "stride": 2, "padding": [0, 2], "bias": false}})"),
       {2, 7, 9, 8},
       {{{"out", 2}, {"in", 3}}, {{"out", 3}, {"in", 8}}},
       {{"out", 1}, {"in", 16}},
       "in rank is 16, the mode has size 8; legal range is 1..8"},
      {"tucker2",
       config(R"({"conv2d": {"in": 2, "out": 33, "kernel": [2, 2]}})"),
       {1, 5, 5, 2},
       {{{"out", 4}, {"in", 1}}, {{"out", 8}, {"in", 2}}},
       {{"out", 5}, {"in", 1}},
       "out rank is 5, more than the 4 taps times the in rank 1; no core has it"},
      {"svd",
       config(R"({"conv2d": {"in": 9, "out": 7, "kernel": 1, "stride": 2, "padding": 1}})"),
       {2, 7, 5, 9},
       {{{"rank", 1}}, {{"rank", 3}}, {{"rank", 7}}},
       {{"rank", 8}},
       "rank is 8, the weight is 7 x 9; legal range is 1..7"},
      {"svd",
       config(R"({"conv2d": {"in": 1, "out": 1, "kernel": 1, "bias": false}})"),
       {1, 3, 3, 1},
       {{{"rank", 1}}},
       {{"rank", 0}},
       "rank is 0, the weight is 1 x 1; legal range is 1..1"},
      {"spatial_svd",
       config(R"({"conv2d": {"in": 5, "out": 7, "padding": 1}})"),
       {2, 7, 9, 5},
       {{{"rank", 1}}, {{"rank", 6}}, {{"rank", 15}}},
       {{"rank", 16}},
       "rank is 16, the weight is 21 x 15; legal range is 1..15"},
      {"spatial_svd",
       config(
           R"({"conv2d": {"in": 4, "out": 3, "kernel": [3, 5], "stride": [2, 3], "padding": [0, 2], "dilation": [2, 1], "bias": false}})"),
       {2, 9, 11, 4},
       {{{"rank", 2}}, {{"rank", 12}}},
       {{"rank", 13}},
       "rank is 13, the weight is 15 x 12; legal range is 1..12"},
      {"spatial_svd",
       config(R"({"conv2d": {"in": 6, "out": 2, "kernel": [1, 3]}})"),
       {1, 4, 5, 6},
       {{{"rank", 1}}, {{"rank", 6}}},
       {{"rank", 7}},
       "rank is 7, the weight is 6 x 6; legal range is 1..6"},
      {"cp",
       config(R"({"conv2d": {"in": 5, "out": 7, "padding": 1}})"),
       {2, 7, 9, 5},
       {{{"rank", 1}}, {{"rank", 3}}, {{"rank", 6}}},
       {{"rank", 46}},
       "rank is 46, the weight is 7 x 3x3 x 5; legal range is 1..45"},
      {"cp",
       config(R"({"conv2d": {"in": 4, "out": 3, "kernel": [3, 5], "stride": [2, 3], "padding": [0, 2], "bias": false}})"),
       {2, 9, 11, 4},
       {{{"rank", 2}}, {{"rank", 4}}},
       {{"rank", 0}},
       "rank is 0, the weight is 3 x 3x5 x 4; legal range is 1..36"},
      {"cp",
       config(R"({"conv2d": {"in": 6, "out": 4, "kernel": [1, 3], "stride": 2, "padding": [1, 1]}})"),
       {1, 4, 5, 6},
       {{{"rank", 1}}, {{"rank", 3}}},
       {{"rank", 13}},
       "rank is 13, the weight is 4 x 1x3 x 6; legal range is 1..12"},
      {"cp",
       config(R"({"conv2d": {"in": 6, "out": 4, "kernel": [3, 1], "stride": 2, "padding": [1, 1]}})"),
       {1, 4, 5, 6},
       {{{"rank", 2}}, {{"rank", 3}}},
       {{"rank", 13}},
       "rank is 13, the weight is 4 x 3x1 x 6; legal range is 1..12"},
      {"tt",
       config(R"({"conv2d": {"in": 6, "out": 8, "padding": 1}})"),
       {2, 7, 9, 6},
       {tt_ranks(Modes{1, 1, 1, 1}), tt_ranks(Modes{2, 4, 3, 3}), tt_ranks(Modes{2, 8, 6, 3})},
       tt_ranks(Modes{2, 9, 6, 3}),
       "r2 is 9 between modes of 4 and 9; beside its neighbours legal range is 1..8"},
      {"tt",
       config(R"({"conv2d": {"in": 4, "out": 15, "kernel": [1, 3], "stride": 2, "padding": [0, 1], "bias": false}})"),
       {1, 7, 5, 4},
       {tt_ranks(Modes{2, 3, 2, 1}), tt_ranks(Modes{3, 12, 4, 2})},
       tt_ranks(Modes{2, 3}),
       "names 2 ranks, the modes 3·5·3·2·2 have 4"},
      {"tt",
       config(R"({"linear": {"in": 12, "out": 10}})"),
       {3, 12},
       {tt_ranks(Modes{1}), tt_ranks(Modes{4}), tt_ranks(Modes{6})},
       tt_ranks(Modes{7}),
       "r1 is 7 between modes of 6 and 20; beside its neighbours legal range is 1..6"},
      {"tt",
       config(R"({"embedding": {"vocabulary": 12, "width": 15}})"),
       {3, 7},
       {tt_ranks(Modes{1}), tt_ranks(Modes{5}), tt_ranks(Modes{9})},
       tt_ranks(Modes{10}),
       "r1 is 10 between modes of 9 and 20; beside its neighbours legal range is 1..9"},
      {"tt",
       config(R"({"embedding": {"vocabulary": 257, "width": 6}})"),
       {11},
       {tt_ranks(Modes{2}), tt_ranks(Modes{31}), tt_ranks(Modes{32})},
       tt_ranks(Modes{3, 3}),
       "names 2 ranks, the modes 32·51 have 1"},
      {"tt_garipov",
       config(R"({"conv2d": {"in": 6, "out": 8, "padding": 1}})"),
       {2, 7, 9, 6},
       {tt_ranks(Modes{1, 1}), tt_ranks(Modes{3, 5}), tt_ranks(Modes{9, 12})},
       tt_ranks(Modes{10, 12}),
       "r1 is 10 between modes of 9 and 4; beside its neighbours legal range is 1..9"},
      {"tt_garipov",
       config(
           R"({"conv2d": {"in": 4, "out": 15, "kernel": [1, 3], "stride": 2, "padding": [0, 1], "dilation": [2, 1], "bias": false}})"),
       {1, 7, 5, 4},
       {tt_ranks(Modes{2, 4}), tt_ranks(Modes{3, 10})},
       tt_ranks(Modes{2}),
       "names 1 ranks, the modes 3·6·10 have 2"},
      {"svd",
       config(R"({"linear": {"in": 13, "out": 17}})"),
       {3, 13},
       {{{"rank", 1}}, {{"rank", 5}}, {{"rank", 13}}},
       {{"rank", 14}},
       "rank is 14, the weight is 17 x 13; legal range is 1..13"},
      {"svd",
       config(R"({"linear": {"in": 7, "out": 3, "bias": false}})"),
       {2, 11, 7},
       {{{"rank", 2}}, {{"rank", 3}}},
       {{"rank", 4}},
       "rank is 4, the weight is 3 x 7; legal range is 1..3"},
  };
}

}  // namespace tessera::testing
