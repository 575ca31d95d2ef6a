// A twin: a scaled-down copy of a config that this build runs, on any machine.
//
// It keeps what makes the run what it is: experts and top-k, the pattern of dense and MoE layers,
// every axis of the layout as far as kMostTwinRanks allow (where there are several ranks, two at
// least), the overlap switches, bf16 or fp32, and the number of micro-batches up to
// kMostTwinBatches. Widths, heads, sequence, vocabulary and layers shrink, and what is not built is
// switched off. A value that is small enough stays.
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
  config::Config config;        // not judged: judge() sets what follows from it
  std::vector<Change> changes;  // every key in which it differs, in the order of fields()
  // Keys that went to their defaults because a rule refused them at the twin's size, and the rule:
  // what the twin does not show of the run.
  std::vector<std::string> given_up = {};
};

// Of a legal config. Equal configs have equal twins.
Twin twin_of(const config::Config& config);

}  // namespace weft::plan
