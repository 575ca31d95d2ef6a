// Rotary positions: angles of the channels, and the effect of stretching on the scores.
#pragma once

#include "weft/config/model_config.h"
#include "weft/kernels/kernels.h"

namespace weft::model {

// Angles of the model's table of cosines and sines.
kernels::RotaryAngles rotary_angles(const config::ModelConfig& config);
// Channels of a query head that turn together.
kernels::Rotary query_rotary(const config::ModelConfig& config);
// Factor on the scores.
float score_scale(const config::ModelConfig& config);

}  // namespace weft::model
