// Report of `weft bench dispatch`: rows, bytes, times and bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/terminal/bar.h"
#include "weft/config/config.h"
#include "weft/measure/bench/dispatch_bench.h"
#include "weft/measure/bench/row_copies_bench.h"

namespace weft::cli {

struct DispatchReport {
  const config::Config& config;
  std::int64_t tokens = 0;
  bool links_chosen = true;  // false: the user chose the links
  measure::DispatchBench bench;
  std::vector<measure::RowCopy> copies;
};

// Bars for this shape. The dispatchers have bars for 64 experts, top-8, 8 ranks, 4 per machine, and
// links chosen by the bench.
std::vector<Bar> bars_of(const DispatchReport& report);

std::string to_text(const DispatchReport& report);
base::Json to_json(const DispatchReport& report);

}  // namespace weft::cli
