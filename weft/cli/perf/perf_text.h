// Text of a perf report: a table for the terminal, a Markdown page for the result folder.
#pragma once

#include <string>

#include "weft/cli/perf/perf_report.h"

namespace weft::cli {

std::string to_text(const PerfReport& report);
std::string to_markdown(const PerfReport& report);

// Text of a dry run: comments on the runs, then runs_text().
std::string dry_run_text(const PerfPlan& plan);
// Running config in YAML, with changes by the harness or a twin. Of several runs the first, with
// the others' differences as comments.
std::string runs_text(const PerfPlan& plan);

// "model.hidden_size: 2048 -> 64 (small enough for any machine)"
std::string change_line(const plan::Change& change);

}  // namespace weft::cli
