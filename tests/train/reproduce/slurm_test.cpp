#include "train/reproduce/slurm.h"

#include <gtest/gtest.h>

#include <array>

namespace tessera {
namespace {

TEST(SlurmScript, HasATaskForEachCell) {
  const std::array<std::string, 2> cells{"dense-lr0.1-seed1", "it's-seed1"};
  EXPECT_EQ(slurm_script({"small", "/bin/tessera reproduce small.yaml --cell", "/home/a b", 4}, cells),
            "#!/bin/sh\n"
            "#SBATCH --job-name=small\n"
            "#SBATCH --array=0-1\n"
            "#SBATCH --output=small-%A_%a.log\n"
            "#SBATCH --signal=B:TERM@120\n"
            "#SBATCH --cpus-per-task=4\n"
            "set -eu\n"
            "cd '/home/a b'\n"
            "case \"$SLURM_ARRAY_TASK_ID\" in\n"
            "0) cell=dense-lr0.1-seed1 ;;\n"
            "1) cell='it'\\''s-seed1' ;;\n"
            "*) echo \"there is no task $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\n"
            "esac\n"
            "exec /bin/tessera reproduce small.yaml --cell \"$cell\"\n");
  EXPECT_EQ(slurm_script({"small", "x", "/", 0}, cells).find("cpus-per-task"), std::string::npos) << "as many as Slurm gives";
}

}  // namespace
}  // namespace tessera
