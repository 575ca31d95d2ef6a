// Defaults of a run that continues a Hugging Face model.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"

namespace weft::train {

// True if the user set this key.
using IsChosen = std::function<bool(std::string_view key)>;

inline constexpr std::int64_t kContinuedTokens = 4096;  // longest sequence by default

// Sets unset keys to values that are safe for a trained model. From `folder` come the dtype, the
// balancing loss and sequences of min(4096, its positions) tokens. Added are a small learning rate
// with warm-up, and evaluations on held-out data. Returns a finding with the reason for each: rule
// D3.
std::vector<config::Finding> set_continuing(const config::ModelConfig& folder,
                                            const IsChosen& is_chosen,
                                            config::Config& config);

}  // namespace weft::train
