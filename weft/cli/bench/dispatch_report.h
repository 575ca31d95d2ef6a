// Report of `weft bench dispatch`: rows, bytes, times and bars.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/measure/bench/dispatch_bench.h"
#include "weft/measure/bench/row_copies_bench.h"
#include "weft/report/document/document.h"

namespace weft::cli {

struct DispatchReport {
  const config::Config& config;
  std::int64_t tokens = 0;
  bool links_chosen = true;  // false: the user chose the links
  measure::DispatchBench bench;
  std::vector<measure::RowCopy> copies;
};

// Bars: the dispatchers have bars for 64 experts, top-8, 8 ranks, 4 per machine, and links chosen
// by the bench; copies have theirs for every shape.
report::Document document_of(const DispatchReport& report);

}  // namespace weft::cli
