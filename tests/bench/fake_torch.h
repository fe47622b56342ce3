// Torch's side of a benchmark as a shell script that answers as torch's would.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "bench/rivals/torch_rival.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera::bench {

class FakeTorch : public ::testing::Test {
 protected:
  // Answers the cases of `commands`, after the line `first`. They know the line's $command, $word and $count, and of the settings
  // $threads, $layout ("--channels-last" or nothing) and $compiled ("--compiled" or nothing).
  TorchProgram program(const std::string& first, const std::string& commands) const {
    const std::string script = (folder_.path() / "torch.sh").string();
    std::ofstream(script)
        << "threads=$3\nlayout=\ncompiled=\n"
        << "for word; do case $word in --channels-last) layout=$word ;; --compiled) compiled=$word ;; esac; done\n"
        << "echo '" << first << "'\nwhile read -r command word count; do\ncase $command in\n"
        << commands << "\nesac\ndone\n";
    return {"/bin/sh", script, folder_.path(), 2};
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace tessera::bench
