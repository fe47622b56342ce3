#include "layers/tt_modes.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kMostSplit = std::int64_t{1} << 40;  // above this size the search takes seconds

// `factor` to the power of `count`, the number of modes.
std::int64_t power_of(std::int64_t factor, std::int64_t count) {
  return product_of(Modes(static_cast<std::size_t>(count), factor));
}

struct Side {
  const char* name;
  const Modes& modes;
};

std::string count_problem(const Side& first, const Side& second) {
  const std::size_t count = first.modes.size();
  if (count != second.modes.size()) {
    return str(first.name, " has ", count, " modes, ", second.name, " has ", second.modes.size(), "; tt needs as many of each");
  }
  if (count < 2) return "tt needs two modes at least";
  return count > kMostPairs ? str("tt holds ", kMostPairs, " modes at most") : "";
}

}  // namespace

Shape shape_of(std::span<const std::int64_t> sizes) { return Shape(sizes); }

std::string to_text(std::span<const std::int64_t> modes) {
  std::string text;
  for (const std::int64_t mode : modes) text += str(text.empty() ? "" : "·", mode);
  return text;
}

Modes balanced_modes(std::int64_t size, std::int64_t count) {
  Modes best, chosen;
  if (size > kMostSplit) {
    best.assign(static_cast<std::size_t>(count), 1);
    best.back() = size;
    return best;
  }
  // Finds the `count` factors with the least sum, in ascending order.
  std::int64_t least = -1;
  const std::function<void(std::int64_t, std::int64_t, std::int64_t)> choose = [&](std::int64_t rest, std::int64_t from,
                                                                                   std::int64_t sum) {
    if (std::ssize(chosen) + 1 == count) {
      if (rest < from || (least >= 0 && sum + rest >= least)) return;
      least = sum + rest;
      best = chosen;
      best.push_back(rest);
      return;
    }
    const auto fits = [&](std::int64_t factor) {  // whether the remaining factors can all be this large
      std::int64_t power = 1;
      for (std::int64_t i = std::ssize(chosen); i < count; ++i) power *= factor;
      return power <= rest;
    };
    for (std::int64_t factor = from; fits(factor); ++factor) {
      if (rest % factor != 0) continue;
      chosen.push_back(factor);
      choose(rest / factor, factor, sum + factor);
      chosen.pop_back();
    }
  };
  choose(size, 1, 0);
  return best;
}

Modes padded_modes(std::int64_t size, std::int64_t count) {
  auto largest = std::max<std::int64_t>(1, std::llround(std::pow(static_cast<double>(size), 1.0 / static_cast<double>(count))));
  while (power_of(largest, count) < size) ++largest;
  while (largest > 1 && power_of(largest - 1, count) >= size) --largest;
  Modes modes(static_cast<std::size_t>(count), largest);
  for (std::int64_t& mode : modes) {
    if (--mode > 0 && product_of(modes) >= size) continue;
    ++mode;
    break;
  }
  return modes;
}

std::string pairs_problem(const Modes& out_modes, std::int64_t out, const Modes& in_modes, std::int64_t in) {
  if (std::string problem = count_problem({"out", out_modes}, {"in", in_modes}); !problem.empty()) return problem;
  if (product_of(out_modes) != out) return str("out_modes ", to_text(out_modes), " is ", product_of(out_modes), ", out is ", out);
  if (product_of(in_modes) != in) return str("in_modes ", to_text(in_modes), " is ", product_of(in_modes), ", in is ", in);
  return "";
}

std::string table_problem(const Modes& row_modes, std::int64_t rows, const Modes& width_modes, std::int64_t width) {
  std::string problem = count_problem({"vocabulary", row_modes}, {"width", width_modes});
  if (!problem.empty()) return problem;
  const std::int64_t padded = product_of(row_modes);
  const std::string all = str("vocabulary_modes ", to_text(row_modes), " is ", padded, ", vocabulary is ", rows);
  if (padded < rows) return str(all, "; needs as much or more");
  if (padded - rows > rows) return str(all, "; needs twice as much at most");
  if (product_of(width_modes) == width) return "";
  return str("width_modes ", to_text(width_modes), " is ", product_of(width_modes), ", width is ", width);
}

Ranks tt_ranks(std::span<const std::int64_t> values) {
  Ranks ranks;
  for (std::size_t k = 0; k < values.size(); ++k) ranks.push_back({str('r', k + 1), values[k]});
  return ranks;
}

std::vector<std::int64_t> values_of(const Ranks& ranks) {
  std::vector<std::int64_t> values;
  for (const Rank& rank : ranks) values.push_back(rank.value);
  return values;
}

std::vector<std::int64_t> largest_tt_ranks(std::span<const std::int64_t> modes) {
  std::vector<std::int64_t> largest;
  for (std::size_t k = 1; k < modes.size(); ++k) {
    largest.push_back(std::min(product_of(modes.first(k)), product_of(modes.subspan(k))));
  }
  return largest;
}

std::vector<RankProblem> tt_rank_problems(std::span<const std::int64_t> modes, const Ranks& ranks) {
  const std::int64_t count = std::ssize(modes) - 1;
  if (std::ssize(ranks) != count) {
    const std::string name = ranks.empty() ? "r1" : ranks.back().name;
    return {{name, str("names ", ranks.size(), " ranks, the modes ", to_text(modes), " have ", count)}};
  }
  std::vector<RankProblem> problems;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const std::int64_t rank = ranks[k].value;
    const std::int64_t before = k == 0 ? 1 : ranks[k - 1].value;
    const std::int64_t after = k + 1 == ranks.size() ? 1 : ranks[k + 1].value;
    const std::int64_t largest = std::min(before * modes[k], modes[k + 1] * after);
    if (rank >= 1 && rank <= largest) continue;
    problems.push_back({ranks[k].name, str(ranks[k].name, " is ", rank, " between modes of ", modes[k], " and ", modes[k + 1],
                                           "; beside its neighbours legal range is 1..", largest)});
  }
  return problems;
}

Ranks legal_tt_ranks(std::span<const std::int64_t> modes, Ranks ranks) {
  std::int64_t before = 1;
  for (std::size_t k = 0; k < ranks.size(); ++k) before = ranks[k].value = std::min(ranks[k].value, before * modes[k]);
  std::int64_t after = 1;
  for (std::size_t k = ranks.size(); k-- > 0;) after = ranks[k].value = std::min(ranks[k].value, modes[k + 1] * after);
  return ranks;
}

}  // namespace tessera
