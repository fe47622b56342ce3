// The forms of layers/factored_conv2d.h, for tests that hold for each of them.
#pragma once

#include <memory>
#include <ostream>

#include "layers/cp_conv2d.h"
#include "layers/spatial_svd_conv2d.h"
#include "layers/svd_conv2d.h"
#include "layers/tucker2_conv2d.h"

namespace tessera::testing {

struct FactoredForm {
  using Build = std::unique_ptr<FactoredConv2d> (*)(Conv2dConfig conv, std::int64_t rank, bool batch_norm);
  const char* name;
  Build build;

  // Of one group; a form may have a kernel of its own.
  std::unique_ptr<FactoredConv2d> make(const Conv2dConfig& conv, std::int64_t rank, bool batch_norm = false) const {
    return build(conv, rank, batch_norm);
  }
};
inline void PrintTo(const FactoredForm& form, std::ostream* out) { *out << form.name; }

template <class Layer>
std::unique_ptr<FactoredConv2d> of_one_rank(const Conv2dConfig& conv, std::int64_t rank, bool batch_norm) {
  return std::make_unique<Layer>(typename Layer::Config{.conv = conv, .rank = rank, .batch_norm = batch_norm});
}

inline const FactoredForm kFactoredForms[]{
    {"svd",
     [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) {
       conv.kernel = {1, 1};
       return of_one_rank<SvdConv2d>(conv, rank, batch_norm);
     }},
    {"spatial_svd",
     [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) { return of_one_rank<SpatialSvdConv2d>(conv, rank, batch_norm); }},
    {"cp", [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) { return of_one_rank<CpConv2d>(conv, rank, batch_norm); }},
    {"cp_of_rows",
     [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) {
       conv.kernel = {3, 1};
       return of_one_rank<CpConv2d>(conv, rank, batch_norm);
     }},
    {"cp_of_one_tap",
     [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) {
       conv.kernel = {1, 1};
       return of_one_rank<CpConv2d>(conv, rank, batch_norm);
     }},
    {"tucker2",
     [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) -> std::unique_ptr<FactoredConv2d> {
       return std::make_unique<Tucker2Conv2d>(
           Tucker2Conv2dConfig{.conv = conv, .rank_in = rank, .rank_out = rank, .batch_norm = batch_norm});
     }},
    {"tucker2_without_in_factor", [](Conv2dConfig conv, std::int64_t rank, bool batch_norm) -> std::unique_ptr<FactoredConv2d> {
       return std::make_unique<Tucker2Conv2d>(
           Tucker2Conv2dConfig{.conv = conv, .rank_in = conv.in, .rank_out = rank, .in_factor = false, .batch_norm = batch_norm});
     }}};

}  // namespace tessera::testing
