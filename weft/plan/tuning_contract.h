// What a tuner keeps: a run with a change trains the same model on the same data, with the same
// layout and in the same numerics. Only then are two step times comparable.
#pragma once

#include <span>
#include <string_view>

namespace weft::plan {

// The keys that may be varied: orders, what runs beside what, dispatchers, fused kernels, what is
// kept or copied to the host, and the size of a micro-batch.
std::span<const std::string_view> tunable_keys();

// ConfigError, with what may be varied and why, where a change of the key breaks the contract.
void require_tunable_key(std::string_view key);

}  // namespace weft::plan
