// What a dispatch of tokens to their experts carries, expected where every expert is as likely.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/config/config.h"

namespace weft::derive {

// Tokens of a micro-batch that a rank has outside of attention.
std::int64_t tokens_of_rank(const config::Config& config);

// Different parts that one token's experts lie in, on average, where `experts` are dealt evenly to
// `parts` (ranks, or machines) and a token visits `topk` of them.
double distinct_parts(std::int64_t experts, std::int64_t topk, std::int64_t parts);

// Copies of a token where experts are on `ranks` and it travels once to each of `parts` of them: to
// all that share an expert it has chosen.
double copies_of_token(const config::ModelConfig& model, std::int64_t ranks, std::int64_t parts);

// Machines that a dispatch crosses to in a first hop, before a second one inside them, as
// dispatch_traffic.h has it. nullopt: one hop, to each rank.
std::optional<std::int64_t> machines_of_hops(const config::Config& config);

// One transfer of one rank: where CPU ranks differ, of the one that sends most to other machines. A
// MoE layer has four for each micro-batch: dispatch and combine, forward and backward.
struct DispatchNumbers {
  std::int64_t tokens = 0;            // a rank brings
  std::int64_t ranks = 1;             // the experts are spread over
  std::int64_t machines = 1;          // those ranks are in: what NVLink, or shared memory, joins
  double rows = 0;                    // sent to other ranks
  double rows_between_machines = 0;   // of them, those that leave the machine
  double bytes = 0;                   // of rows
  double bytes_between_machines = 0;  // of rows_between_machines
};
// What dispatch_traffic.h expects; on GPUs the flex backends do it differently. Nothing where the
// experts are on one rank. Wants a legal config.
DispatchNumbers dispatch_of(const config::Config& config);

}  // namespace weft::derive
