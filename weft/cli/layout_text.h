// How a run's ranks share the model, in the words of a summary line.
#pragma once

#include <string>

#include "weft/config/model_config.h"

namespace weft::cli {

// "pp 2, vpp 2, ep 4": what there is of a pipeline, and ep always.
std::string layout_text(const config::ModelConfig& model);

}  // namespace weft::cli
