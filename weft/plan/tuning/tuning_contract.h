// Contract of a tuner: a changed run trains the same model on the same data, with the same layout
// and numerics. Only then do step times compare.
#pragma once

#include <span>
#include <string_view>

namespace weft::plan {

// Keys that may change: orders, overlap, dispatchers, fused kernels, recomputation, offload, and
// the micro-batch size.
std::span<const std::string_view> tunable_keys();

// ConfigError, with the allowed keys and the reason, if changing the key breaks the contract.
void require_tunable_key(std::string_view key);

}  // namespace weft::plan
