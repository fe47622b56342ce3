// Part of every test program but those that need a GPU: `device: auto` is the CPU in them and in the programs that they start, on
// machines with a GPU too.
#include <cstdlib>

namespace {

[[maybe_unused]] const int hidden = ::setenv("CUDA_VISIBLE_DEVICES", "", 1);

}  // namespace
