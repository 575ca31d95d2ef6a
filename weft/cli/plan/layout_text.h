// Layout of a run in the commands' words.
#pragma once

#include <string_view>

#include "weft/report/run_layout.h"

namespace weft::cli {

using report::layout_text;
using report::order_text;

// Legend of the axes below a table.
inline constexpr std::string_view kAxisLegend =
    "ranks in parallel by: tp tensor, cp context, pp pipeline, dp data; of experts: ep expert, etp "
    "tensor, edp data; vpp:\nparts of a pipeline rank";

}  // namespace weft::cli
