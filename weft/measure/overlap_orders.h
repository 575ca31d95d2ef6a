// Which orders the overlap experiment holds against each other, for each kind of communication.
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
// "dp": as traces call this kind of communication.
std::string_view word(BenchedKind kind);

// Whether an order has the nodes of the plain one, only elsewhere: such orders run on the same
// engine, and what one costs tells what the other does.
enum class Nodes { OfPlain, Own };

// One of several runs that differ in one knob each.
struct OverlapOrder {
  std::string name;
  rules::JudgedConfig config;
  std::vector<config::Finding> warnings;
  Nodes nodes = Nodes::OfPlain;
};
// The plain order, then those that overlap more and more, each judged as a run of its own; the
// plain one alone where no overlap of this kind is built. ConfigError where the rules refuse one,
// or where ranks have no peers to communicate with in this kind.
//
// Where `folder` names schedule files (weft schedule --write), their order comes last; its nodes
// are those of the plain one.
std::vector<OverlapOrder> overlap_orders(const config::Config& config,
                                         BenchedKind kind = BenchedKind::Ep,
                                         const std::string& folder = "");

}  // namespace weft::measure
