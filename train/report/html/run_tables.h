// What a page says of runs in numbers: a row per run, per stage and per layer, and the points of metric against time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/report/html/bars.h"
#include "train/report/html/html_table.h"
#include "train/report/html/result_table.h"
#include "train/report/html/run_files.h"
#include "train/report/plot/scatter.h"

namespace tessera {

// Where a run stands, its metric on val at the end and at its best, and its network.
HtmlTable runs_table(std::span<const ReportRun> runs);
HtmlTable stages_table(const ReportRun& run, const std::string& id);
// A row for each layer that some stage has left in factors, with zeros or held to ranks; a column for each stage that is done.
HtmlTable states_table(const ReportRun& run, const std::string& id);

// A row for each layer that a pass matched: numbers before and after, and in words what became of it.
HtmlTable layers_table(const ReportRun& run, const std::string& stage, const std::string& id);
std::string decision_text(const LayerLine& layer);  // with its format and ranks, or why it "stays dense: ..."

// A picture of networks that were timed alike.
struct TimedPicture {
  std::string title;
  Scatter scatter;
  const Metric* metric = nullptr;
};

// A picture for each way of timing of the runs' reports: the network before and after each pass, with the metric on val at the
// end of its stage, or of the next one that has it. Ranks that ADMM settled were timed in its stage, but their point belongs to
// the stage that factorises at them.
std::vector<TimedPicture> pictures_of(std::span<const ReportRun> runs);
// A picture for each phase and batch.
std::vector<TimedPicture> pictures_of(const ResultTable& results);

}  // namespace tessera
