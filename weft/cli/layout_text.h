// How a run's ranks share the model, in the words of a summary line.
#pragma once

#include <string>
#include <string_view>

#include "weft/config/config.h"

namespace weft::cli {

// "pp 2, vpp 2, ep 4": what there is of a pipeline, and ep always.
std::string layout_text(const config::ModelConfig& model);

// The order of a step that the config asks for.
std::string order_text(const config::Config& config);

// What the names of the axes mean, for under a table.
inline constexpr std::string_view kAxisLegend =
    "ranks in parallel by: tp tensor, cp context, pp pipeline, dp data; of experts: ep expert, etp "
    "tensor, edp data; vpp:\nparts of a pipeline rank";

}  // namespace weft::cli
