// Rules for the JSON of every report.
#include <gtest/gtest.h>

#include "core/config/read.h"
#include "train/checkpoint/manifest.h"
#include "train/data/data_check.h"
#include "train/plan/plan.h"
#include "train/report/bench_report.h"
#include "train/report/eval_report.h"
#include "train/report/predict.h"
#include "train/report/run_diff.h"
#include "train/report/smoke.h"
#include "train/report/table.h"
#include "train/run/profile_report.h"
#include "train/run/status.h"

namespace tessera {
namespace {

template <class Report>
class ReportFields : public testing::Test {};

using Reports = testing::Types<BenchReport, DataReport, EvalReport, Manifest, Plan, Predicted, ProfileReport, RunDiff, RunStatus,
                               SmokeReport, Table>;
TYPED_TEST_SUITE(ReportFields, Reports);

TYPED_TEST(ReportFields, SayWhatEachKeyIs) {
  const std::vector<SchemaEntry> entries = schema<TypeParam>();
  EXPECT_FALSE(entries.empty());
  for (const SchemaEntry& entry : entries) EXPECT_FALSE(entry.spec.help.empty()) << entry.path;
}

// Even an empty report writes every key of the schema's first level.
TYPED_TEST(ReportFields, AreWrittenInTheOrderOfTheirDescription) {
  std::vector<std::string> described, written;
  for (const SchemaEntry& entry : schema<TypeParam>()) {
    if (entry.path.find_first_of(".[") == std::string::npos) described.push_back(entry.path);
  }
  const Value value = write(TypeParam{});
  for (const Value::Entry& entry : value.as_map()) written.push_back(entry.key);
  EXPECT_EQ(written, described);
}

TEST(SmokeJson, HasNullForWhatDidNotHappen) {
  SmokeReport report;
  report.stages.push_back({.name = "dense", .passes = "", .steps = 2, .stage_steps = 9, .loss = 0.5, .tensors = 4});
  report.stages.push_back({.name = "tucker", .passes = "1 of 2 layers"});
  report.where = "stage tucker, reload";
  report.failure = "it broke";
  EXPECT_EQ(to_json(to_value(report)),
            R"({"ok":false,"stopped":false,"stages":[)"
            R"({"name":"dense","passes":null,"steps":2,"stage_steps":9,"loss":0.5,"tensors":4,)"
            R"("checkpoint_bytes":0,"seconds":0.0},)"
            R"({"name":"tucker","passes":"1 of 2 layers","steps":0,"stage_steps":0,"loss":null,"tensors":0,)"
            R"("checkpoint_bytes":0,"seconds":0.0}],"table":null,)"
            R"("failure":{"where":"stage tucker, reload","message":"it broke"}})");
}

TEST(SmokeJson, HasTheTableOfAReportThatWentThrough) {
  EXPECT_EQ(to_json(to_value(SmokeReport{.stages = {}, .table_rows = 2, .table_seconds = 0.5, .where = "", .failure = ""})),
            R"({"ok":true,"stopped":false,"stages":[],"table":{"rows":2,"seconds":0.5},"failure":null})");
}

}  // namespace
}  // namespace tessera
