// A perf report for people: a table on the terminal, a page of Markdown in the folder of results.
#pragma once

#include <string>

#include "weft/cli/perf/perf_report.h"

namespace weft::cli {

std::string to_text(const PerfReport& report);
std::string to_markdown(const PerfReport& report);

// Of a dry run: what would run, as comments, then runs_text().
std::string dry_run_text(const PerfPlan& plan);
// The config that runs, with what the harness or a twin changes, as YAML; of several runs the
// first, and as comments in what the others differ.
std::string runs_text(const PerfPlan& plan);

// "model.hidden_size: 2048 -> 64 (small enough for any machine)"
std::string change_line(const plan::Change& change);

}  // namespace weft::cli
