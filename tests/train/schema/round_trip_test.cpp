// The resolved file holds the whole experiment. For every key, set to another value, it reads back equal, resolves to the same
// bytes, and trains to the same bytes.
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/train/schema/key_files.h"
#include "tests/train/schema/observed.h"
#include "tests/train/schema/test_files.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"
#include "train/experiment.h"
#include "train/run/run_folder.h"

namespace tessera::testing {
namespace {

class RoundTrip : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { test_files(); }
};

TEST_F(RoundTrip, TheResolvedFileReadsBackEqualAndResolvesToItself) {
  for (const SchemaEntry& entry : experiment_schema()) {
    SCOPED_TRACE(entry.path);
    const Experiment first = parse_experiment(parse_yaml(to_yaml(files_for(entry).with), "generated.yaml"));
    const std::string text = to_yaml(first.resolved);
    const Experiment again = parse_experiment(parse_yaml(text, "resolved.yaml"));
    EXPECT_EQ(again.resolved, first.resolved);
    EXPECT_EQ(write(again.config), write(first.config));
    EXPECT_EQ(to_yaml(again.resolved), text);
  }
}

TEST_F(RoundTrip, ARunsResolvedFileIsAnExperimentFileOfTheSameRun) {
  for (const SchemaEntry& entry : experiment_schema()) {
    SCOPED_TRACE(entry.path);
    if (is_block(entry)) continue;
    Observed& given = observed(files_for(entry).with);
    if (given.refused() || entry.path == "model.allow_nonfinite") continue;  // a run on NaNs ends at its first step
    const std::string file = RunFolder::open(real_vfs(), given.run_folder()).resolved_config();
    const Experiment experiment = load_experiment(file);
    EXPECT_EQ(to_yaml(experiment.resolved), real_vfs().read_file(file));
    if (!experiment.config.deterministic) continue;  // the clock would choose again
    EXPECT_EQ(observed(experiment.resolved).at("bytes"), given.at("bytes"));
  }
}

}  // namespace
}  // namespace tessera::testing
