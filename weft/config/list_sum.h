// Sums and repeats of lists, in the form of Megatron-LM's --moe-layer-freq: ([0]*1+[1]*47).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::config {

// Items of `[a,b]*n+[c]`, with or without outer brackets. nullopt: no such sum, a plain list, or
// more than kLongestList items.
std::optional<std::vector<std::string>> expand_list_sum(std::string_view written);

}  // namespace weft::config
