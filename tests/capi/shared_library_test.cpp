// libtessera.so from outside: its symbols, and examples/python/tessera_run.py on it. Only if the build has the library.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "tests/capi/networks.h"
#include "tests/support/python.h"

namespace tessera::capi::testing {
namespace {

using tessera::testing::output_of;
using tessera::testing::python_with;

TEST(CSharedLibrary, ShowsTheFunctionsOfTheHeaderAlone) {
  std::istringstream symbols(output_of("nm -D --defined-only " TESSERA_C_LIBRARY));
  std::set<std::string> functions;
  for (std::string address, type, name; symbols >> address >> type >> name;) {
    if (type == "A") continue;  // the symbol of the version itself
    EXPECT_EQ(type, "T") << name;
    functions.insert(name.substr(0, name.find('@')));
  }
  EXPECT_EQ(functions, (std::set<std::string>{"tessera_abi_version", "tessera_describe", "tessera_free", "tessera_last_error",
                                              "tessera_load", "tessera_output_shape", "tessera_run", "tessera_set_threads",
                                              "tessera_version"}));
}

TEST(CSharedLibrary, IsFoundByTheNumberOfItsInterface) {
  const std::string dynamic = output_of("readelf -d " TESSERA_C_LIBRARY);
  EXPECT_NE(dynamic.find(str("Library soname: [libtessera.so.", TESSERA_ABI_VERSION, "]")), std::string::npos) << dynamic;
}

TEST(CSharedLibrary, ThePythonModuleSaysWhatTheFunctionsSay) {
  const std::string python = python_with("numpy");
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy";
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const auto& values) {
    std::ofstream(folder.path() / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  Buffer<float> images = some_images(3);
  write("images", images.values);
  write("scores", scores_of(Loaded(dense_run()), images));
  EXPECT_EQ(output_of("TESSERA_LIBRARY=" TESSERA_C_LIBRARY " PYTHONPATH=" TESSERA_PYTHON_MODULE " PYTHONDONTWRITEBYTECODE=1 " +
                      python + " " TESSERA_PYTHON_TEST " " + dense_run() + " " + folder.path().string() + " 2>&1"),
            "done\n");
}

}  // namespace
}  // namespace tessera::capi::testing
