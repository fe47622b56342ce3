#include "train/report/html/page.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/html/assets.h"
#include "train/report/html/sections.h"
#include "train/report/plot/markup.h"
#include "train/run/environment.h"

namespace tessera {
namespace {

// runs/small/1 -> "small/1".
std::string short_path(const std::string& path) {
  const std::filesystem::path whole(path);
  return (whole.parent_path().filename() / whole.filename()).string();
}

// The label of a run is the shortest of name, name and number, and path that tells it apart.
void label_runs(std::vector<ReportRun>& runs) {
  std::vector<std::string> labels;
  for (const ReportRun& run : runs) {
    const auto shorter = [&](const ReportRun& other) { return short_path(other.path); };
    const bool alone = std::ranges::count(runs, run.name, &ReportRun::name) == 1;
    const bool short_alone = std::ranges::count(runs, short_path(run.path), shorter) == 1;
    labels.push_back(alone ? run.name : short_alone ? short_path(run.path) : run.path);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].label = std::move(labels[i]);
}

std::string title_of(const ReportSources& sources) {
  std::string title;
  for (const ReportRun& run : sources.runs) title += str(title.empty() ? "" : ", ", run.label);
  for (const ResultTable& table : sources.tables) title += str(title.empty() ? "" : ", ", table.name);
  return title;
}

std::string head(const std::string& title, int reload_seconds) {
  return str(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
      reload_seconds > 0 ? str("<meta http-equiv=\"refresh\" content=\"", reload_seconds, "\">\n") : std::string(), "<title>",
      escaped(title), "</title>\n<style>\n", assets::kStyle, "</style>\n</head>\n");
}

}  // namespace

bool ReportSources::open() const { return std::ranges::any_of(runs, &ReportRun::open); }

ReportSources read_report_sources(Vfs& vfs, std::span<const std::string> paths, SavedNetworks* known) {
  ReportSources sources;
  for (const std::string& path : paths) {
    TESSERA_CHECK(vfs.exists(path), ConfigError, "report: there is no ", path, "; give run folders and JSON tables");
    for (const std::string& other : paths.first(static_cast<std::size_t>(&path - paths.data()))) {
      TESSERA_CHECK(!std::filesystem::equivalent(path, other), ConfigError, "report: ", path, " and ", other,
                    " are the same; give it once");
    }
    if (std::filesystem::is_directory(path)) {
      sources.runs.push_back(read_report_run(vfs, path, known));
    } else {
      sources.tables.push_back(read_result_table(vfs, path));
    }
  }
  label_runs(sources.runs);
  return sources;
}

std::string report_page(const ReportSources& sources, const PageOptions& options) {
  std::vector<Section> sections;
  const auto add = [&](const char* id, const char* title, std::string body) {
    if (!body.empty()) sections.push_back({id, title, std::move(body)});
  };
  add("summary", "At a glance", summary_html(sources));
  add("curves", "Over the steps", all_curves_html(sources.runs));
  add("speed", "Quality against measured time", speed_html(sources));
  add("layers", "Layer by layer", layers_html(sources.runs));
  add("stages", "Stage by stage", stages_html(sources.runs));
  add("settings", "Settings and environment", settings_html(sources));
  add("commands", "Commands", commands_html(sources, options.command));

  const std::string title = title_of(sources);
  std::string contents, body;
  for (const Section& section : sections) {
    contents += str("<a href=\"#", section.id, "\">", section.title, "</a>\n");
    body += str("<section aria-labelledby=\"", section.id, "\">\n<h2 id=\"", section.id, "\">", section.title, "</h2>\n",
                section.body, "</section>\n");
  }
  return str(head(title, options.reload_seconds),
             "<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n<header>\n<h1>", escaped(title),
             "</h1>\n<nav aria-label=\"Contents\">\n", contents, "</nav>\n</header>\n<main id=\"content\">\n", body,
             "</main>\n<footer class=\"note\"><p>Written by tessera ", escaped(version_text()), ".</p></footer>\n<script>\n",
             assets::kScript, "</script>\n</body>\n</html>\n");
}

}  // namespace tessera
