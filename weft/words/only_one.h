// Mutually exclusive keys: two ways to say one thing. Words, or a later file, override the recipe's
// key.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/finding.h"
#include "weft/words/ledger.h"

namespace weft::words {

// Overridden key, with the value that it gets.
struct Displaced {
  std::string key, value;
  std::string message;
};

// Keys with a value for which `is_said` is false, while another key of their pair is said. If both
// are said neither is overridden: the rules refuse them.
std::vector<Displaced> displaced(const config::Config& config,
                                 const std::function<bool(std::string_view key)>& is_said);

// Finding of rule W146.
config::Finding finding_of(Displaced one);

// Resets keys whose alternative is said by words (rule W146).
void displace_others(Ledger& ledger);

}  // namespace weft::words
