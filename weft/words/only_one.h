// Keys of which only one holds: two ways to say one thing. What words or a later file say takes the
// place of what the recipe says.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"
#include "weft/words/ledger.h"

namespace weft::words {

// A key that gives way, and the value that it gets.
struct Displaced {
  std::string key, value;
  std::string message;
};

// Keys that have a value and that `is_said` does not know, where another of their kind is said. Of
// two that are said none gives way: the rules refuse them.
std::vector<Displaced> displaced(const config::Config& config,
                                 const std::function<bool(std::string_view key)>& is_said);

// Of rule W146.
config::Finding finding_of(Displaced one);

// Where words say one, the others get their defaults: rule W146.
void displace_others(Ledger& ledger);

}  // namespace weft::words
