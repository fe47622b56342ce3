// Names of the ways to run a convolution on the CPU that hold buffers beside the operands, such as images in another layout:
// choices of core/device/decisions.h, for those who ask what each would take.
#pragma once

#include <array>

namespace tessera {

inline constexpr const char* kBlockedConv2d = "blocked";  // images in oneDNN's layout
inline constexpr const char* kOnednnWinograd = "winograd";
inline constexpr const char* kNhwcWinograd = "winograd_nhwc";  // ours
inline constexpr const char* kPatchesConv2d = "patches";  // windows that lie side by side, as rows of a matrix
inline constexpr std::array kBufferedConv2dWays{kBlockedConv2d, kOnednnWinograd, kNhwcWinograd, kPatchesConv2d};

}  // namespace tessera
