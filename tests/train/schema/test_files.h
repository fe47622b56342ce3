// What the files of key_contexts.cpp name: images, a broken one among them, and weights, with a NaN among them.
#pragma once

#include <filesystem>

namespace tessera::testing {

// A folder of this process, made at the first call and removed at exit; TESSERA_TEST_FILES names it from then on. Images that are
// measured are not cached.
const std::filesystem::path& test_files();

}  // namespace tessera::testing
