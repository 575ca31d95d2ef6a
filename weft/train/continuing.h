// A run that goes on training a Hugging Face model, where little more than the folder is said.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"

namespace weft::train {

// Whether somebody chose the value of a key.
using IsChosen = std::function<bool(std::string_view key)>;

inline constexpr std::int64_t kContinuedTokens = 4096;  // a sequence at most

// Sets what is not chosen to values that do not harm a trained model: the dtype and the balancing
// loss of `folder`, sequences of min(4096, its positions), a small learning rate with warm-up, and
// evaluations of held-out data. Returns what it set, with the reason: rule D3.
std::vector<config::Finding> set_continuing(const config::ModelConfig& folder,
                                            const IsChosen& is_chosen,
                                            config::Config& config);

}  // namespace weft::train
