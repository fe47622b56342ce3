#include "compress/formats/builtin.h"

#include <algorithm>

#include "compress/formats/cp.h"
#include "compress/formats/spatial_svd.h"
#include "compress/formats/svd.h"
#include "compress/formats/tt.h"
#include "compress/formats/tt_garipov.h"
#include "compress/formats/tucker2.h"
#include "core/support/error.h"

namespace tessera {

std::span<const Format* const> builtin_formats() {
  static const Format* const all[]{&tucker2_format(), &svd_format(), &spatial_svd_format(),
                                   &cp_format(),      &tt_format(),  &tt_garipov_format()};
  return all;
}

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const Format* format : builtin_formats()) names.push_back(format->name());
  return names;
}

const Format& format_named(std::string_view name) {
  std::string known;
  for (const Format* format : builtin_formats()) {
    if (format->name() == name) return *format;
    known += str(' ', format->name());
  }
  throw ConfigError(str("unknown format '", name, "'; known:", known));
}

std::vector<RankName> all_rank_names() {
  std::vector<RankName> all;
  for (const Format* format : builtin_formats()) {
    for (const RankName& rank : format->rank_names()) {
      if (std::ranges::find(all, rank.name, &RankName::name) == all.end()) all.push_back(rank);
    }
  }
  return all;
}

}  // namespace tessera
