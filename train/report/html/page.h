// Runs and tables as one HTML page that needs nothing beside itself: no request, no font, no script of anywhere else.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/report/html/result_table.h"
#include "train/report/html/run_files.h"

namespace tessera {

struct ReportSources {
  std::vector<ReportRun> runs;
  std::vector<ResultTable> tables;

  bool open() const;  // the program of a run is running
};

// Reads each path as a run where it is a folder, otherwise as a table. Throws as read_report_run() and read_result_table() do.
ReportSources read_report_sources(Vfs& vfs, std::span<const std::string> paths, SavedNetworks* known = nullptr);

struct PageOptions {
  std::string command;  // that makes the page
  int reload_seconds = 0;  // a browser reads the page again after these; 0 = never
};

// The same sources give the same bytes, whenever the page is made.
std::string report_page(const ReportSources& sources, const PageOptions& options);

}  // namespace tessera
