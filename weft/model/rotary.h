// Positions: how channels turn by them, and what stretching them does to the scores.
#pragma once

#include "weft/config/model_config.h"
#include "weft/kernels/kernels.h"

namespace weft::model {

// The angles of the model's table of cosines and sines.
kernels::RotaryAngles rotary_angles(const config::ModelConfig& config);
// Which channels of a query head turn together.
kernels::Rotary query_rotary(const config::ModelConfig& config);
// The factor on the scores.
float score_scale(const config::ModelConfig& config);

}  // namespace weft::model
