// The 18 core convolutions of TDC's benchmark (Xiang et al. 2023): 3x3, stride 1, padding 1, one image of size x size pixels.
#pragma once

namespace tessera::bench {

struct TdcCore {
  int in, out, size;
};

inline constexpr TdcCore kTdcCores[]{{64, 32, 224}, {64, 32, 112}, {32, 32, 56},  {64, 32, 56},  {64, 64, 56}, {32, 32, 28},
                                     {64, 32, 28},  {96, 64, 28},  {160, 96, 28}, {192, 96, 28}, {32, 32, 14}, {64, 32, 14},
                                     {128, 96, 14}, {192, 96, 14}, {32, 32, 7},   {64, 32, 7},   {96, 64, 7},  {192, 160, 7}};

}  // namespace tessera::bench
