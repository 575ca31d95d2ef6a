// Advice: notes on a legal run, apart from the rules. Each has its reason and the measured number
// behind it; none refuses or changes anything.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::rules {

// What one piece of advice says of one config.
struct Note {
  std::string id;
  std::string key;
  std::string message;  // with the numbers of the run
  std::string fix;      // what to try
};

struct Advice {
  std::string_view id;
  std::string_view when;
  std::string_view then;
  std::string_view why;
  std::string_view measured;  // the number behind it, and where it was measured
  std::string_view example;   // overrides over the defaults that bring it up
  // What it says of a legal config; the id is filled in by advise().
  std::optional<Note> (*judge)(const config::Config&);
};

std::span<const Advice> all_advice();
const Advice* find_advice(std::string_view id);

// Every note on a config that the rules accept.
std::vector<Note> advise(const config::Config& config);

}  // namespace weft::rules
