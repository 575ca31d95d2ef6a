// Twin: scaled-down copy of a config that this build can run on any machine.
//
// The twin keeps the character of the run: experts and top-k, the pattern of dense and MoE layers,
// overlap switches, bf16 or fp32. Axes of the layout stay within kMostTwinRanks; an axis above 1
// stays at least 2. The number of micro-batches stays, up to kMostTwinBatches. Widths, heads,
// sequence, vocabulary and layers shrink, and unbuilt parts are switched off. Small values stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"

namespace weft::plan {

inline constexpr std::int64_t kMostTwinRanks = 16;
inline constexpr std::int64_t kMostTwinBatches = 8;

struct Change {
  std::string key;
  base::Json from;
  base::Json to;
  std::string why;
};

struct Twin {
  config::Config config;        // not judged: judge() sets derived keys
  std::vector<Change> changes;  // every changed key, in the order of fields()
  // Keys reset to their defaults because a rule refused them at the twin's size, with the rule. The
  // twin does not show these aspects of the run.
  std::vector<std::string> given_up = {};
};

// Twin of a legal config. Equal configs have equal twins.
Twin twin_of(const config::Config& config);

}  // namespace weft::plan
