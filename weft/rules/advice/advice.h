// Advice: notes on a legal run, separate from the rules. Each note has a reason and a measured
// number; none refuses or changes anything.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"

namespace weft::rules {

// Result of one piece of advice for one config.
struct Note {
  std::string id;
  std::string key;
  std::string message;  // with the numbers of the run
  std::string fix;      // change to try
};

struct Advice {
  std::string_view id;
  std::string_view when;
  std::string_view then;
  std::string_view why;
  std::string_view measured;  // measured number, and where it was measured
  std::string_view example;   // overrides over the defaults that trigger it
  // Note on a legal config; advise() fills in the id. nullopt: not applicable.
  std::optional<Note> (*judge)(const config::Config&);
};

std::span<const Advice> all_advice();
const Advice* find_advice(std::string_view id);

// Notes on a config that the rules accept.
std::vector<Note> advise(const config::Config& config);

}  // namespace weft::rules
