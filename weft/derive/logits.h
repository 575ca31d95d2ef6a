// Number of logits that exist at a time.
#pragma once

#include <cstdint>

#include "weft/config/config.h"

namespace weft::derive {

// Tensor kept between the head's forward and backward. Whole: all fp32 logits, whose gradient may
// take their place. AsGradient: the gradient alone, in the parameters' dtype.
enum class LogitsKept { Whole, AsGradient };

LogitsKept logits_kept(const config::Config& config);
// Tokens per chunk in a training step; 0: all at once.
std::int64_t logits_chunk(const config::Config& config);

}  // namespace weft::derive
