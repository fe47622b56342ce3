// Part of every test program that does not need a GPU: `device: auto` is the CPU in it and in the programs that it starts, even
// on machines with a GPU.
#include <cstdlib>

namespace {

[[maybe_unused]] const int hidden = ::setenv("CUDA_VISIBLE_DEVICES", "", 1);

}  // namespace
