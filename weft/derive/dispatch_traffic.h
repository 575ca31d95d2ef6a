// Expected wire traffic of each dispatcher in one layer's forward, assuming that all experts are
// equally likely. Compared with counted traffic.
#pragma once

#include <cstdint>

#include "weft/config/model_config.h"

namespace weft::derive {

// Traffic of one rank over one kind of link.
struct WireTraffic {
  double rows = 0;                                      // dispatch; combine returns equally many
  double payload = 0, probabilities = 0, metadata = 0;  // bytes of dispatch plus combine

  double bytes() const { return payload + probabilities + metadata; }
};

struct DispatchTraffic {
  WireTraffic inside, between;  // within the sender's machine; between machines
};

// Ranks of the expert-parallel group, `ranks_per_node` of them in the sender's machine, each with
// equally many tokens. Only flex uses machines, and needs equally many ranks in each.
struct DispatchShape {
  std::int64_t ranks = 1, ranks_per_node = 1, tokens = 0;
  bool is_uneven = false;  // machines hold unequal parts of some group: deepep does not forward

  std::int64_t machines() const { return ranks / ranks_per_node; }
};

// True if a token crosses to a machine once, and a rank there forwards it: hybridep always, deepep
// between machines with several ranks each.
bool passes_on(const config::ModelConfig& model, const DispatchShape& shape);

// With forwarding, rows within a machine are those that middle ranks forward.
DispatchTraffic expected_traffic(const config::ModelConfig& model, const DispatchShape& shape);

}  // namespace weft::derive
