// Orders compared by the overlap experiment, for each kind of communication.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/rules/validate.h"

namespace weft::measure {

// Expert, data, tensor, pipeline and context parallelism.
enum class BenchedKind { Ep, Dp, Tp, Pp, Cp };
constexpr BenchedKind kBenchedKinds[] = {BenchedKind::Ep,
                                         BenchedKind::Dp,
                                         BenchedKind::Tp,
                                         BenchedKind::Pp,
                                         BenchedKind::Cp};
// Name in traces: "dp".
std::string_view word(BenchedKind kind);

// OfPlain: the order has the plain order's nodes in other places. Such orders run on one engine,
// and node costs of one predict the other.
enum class Nodes { OfPlain, Own };

// One of several runs; each differs in one knob.
struct OverlapOrder {
  std::string name;
  rules::JudgedConfig config;
  std::vector<config::Finding> warnings;
  Nodes nodes = Nodes::OfPlain;
};
// Plain order, then increasingly overlapped orders, each judged as a run of its own. Only the plain
// order if no overlap of this kind is built. ConfigError if the rules refuse an order, or ranks
// have no peers in this kind.
//
// If `folder` names schedule files (weft schedule --write), their order comes last, with the plain
// order's nodes.
std::vector<OverlapOrder> overlap_orders(const config::Config& config,
                                         BenchedKind kind = BenchedKind::Ep,
                                         const std::string& folder = "");

}  // namespace weft::measure
