// Sums and repeats of lists, as Megatron-LM's --moe-layer-freq writes them: ([0]*1+[1]*47).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::config {

// The items of `[a,b]*n+[c]`, with brackets around the whole or without. Nothing where the text is
// no such sum, one plain list included, or has more than kLongestList items.
std::optional<std::vector<std::string>> expand_list_sum(std::string_view written);

}  // namespace weft::config
