// A perf report for people: a table on the terminal, a page of Markdown in the folder of results.
#pragma once

#include <string>

#include "weft/cli/perf_report.h"

namespace weft::cli {

std::string to_text(const PerfReport& report);
std::string to_markdown(const PerfReport& report);

// Of a dry run: the resolved config as YAML, and as comments what would run.
std::string dry_run_text(const PerfPlan& plan);

// "model.hidden_size: 2048 -> 64 (small enough for any machine)"
std::string to_text(const plan::Change& change);

}  // namespace weft::cli
