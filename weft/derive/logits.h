// How many logits exist at a time.
#pragma once

#include <cstdint>

#include "weft/config/config.h"

namespace weft::derive {

// Between forward and backward of the head: all in fp32, whose gradient may take their place, or
// their gradient alone, in the dtype of the parameters.
enum class LogitsKept { Whole, AsGradient };

LogitsKept logits_kept(const config::Config& config);
// Tokens of a part in a training step; 0: all at once.
std::int64_t logits_chunk(const config::Config& config);

}  // namespace weft::derive
