// What each dispatcher puts on the wire in the forward of one layer, expected where every
// expert is as likely: to hold against what was counted.
#pragma once

#include <cstdint>

#include "weft/config/model_config.h"

namespace weft::derive {

// Of one rank, over one kind of link.
struct WireTraffic {
  double rows = 0;                                      // of dispatch; as many come back
  double payload = 0, probabilities = 0, metadata = 0;  // bytes of dispatch and combine together

  double bytes() const { return payload + probabilities + metadata; }
};

struct DispatchTraffic {
  WireTraffic inside, between;  // inside the sender's machine; between machines
};

// Ranks of the expert-parallel group, of which `ranks_per_node` are in the sender's machine, each
// bringing as many tokens. Only flex asks for the machines, and wants as many ranks in each.
struct DispatchShape {
  std::int64_t ranks = 1, ranks_per_node = 1, tokens = 0;
  bool is_uneven = false;  // machines hold unequal parts of some group: deepep passes nothing on

  std::int64_t machines() const { return ranks / ranks_per_node; }
};

// Whether a token crosses to a machine once and a rank there passes it on: hybridep always, deepep
// between machines with several ranks each.
bool passes_on(const config::ModelConfig& model, const DispatchShape& shape);

// Rows inside a machine are those that the ranks in the middle pass on, where they do.
DispatchTraffic expected_traffic(const config::ModelConfig& model, const DispatchShape& shape);

}  // namespace weft::derive
