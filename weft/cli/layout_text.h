// How a run's ranks share the model, in the words of a summary line.
#pragma once

#include <string>

#include "weft/config/config.h"

namespace weft::cli {

// "pp 2, vpp 2, ep 4": what there is of a pipeline, and ep always.
std::string layout_text(const config::ModelConfig& model);

// The order of a step that the config asks for.
std::string order_text(const config::Config& config);

}  // namespace weft::cli
