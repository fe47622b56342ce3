// The parts of a page of runs and tables. Each is empty where the sources have nothing to show in it.
#pragma once

#include <span>
#include <string>

#include "train/report/html/page.h"

namespace tessera {

struct Section {
  std::string id;
  std::string title;
  std::string body;
};

std::string summary_html(const ReportSources& sources);
std::string all_curves_html(std::span<const ReportRun> runs);  // says so where no run has a number yet
std::string speed_html(const ReportSources& sources);
std::string layers_html(std::span<const ReportRun> runs);
std::string stages_html(std::span<const ReportRun> runs);
std::string settings_html(const ReportSources& sources);
std::string commands_html(const ReportSources& sources, const std::string& command);

}  // namespace tessera
