// Expected traffic of a dispatch, assuming that all experts are equally likely.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/config/config.h"

namespace weft::derive {

// Tokens of a micro-batch on a rank outside attention.
std::int64_t tokens_of_rank(const config::Config& config);

// Mean number of distinct parts that a token's experts lie in. `experts` are dealt evenly to
// `parts` (ranks or machines), and a token visits `topk` experts.
double distinct_parts(std::int64_t experts, std::int64_t topk, std::int64_t parts);

// Copies of a token that travels once to each of `parts` parts of `ranks`: to all ranks that share
// an expert it chose.
double copies_of_token(const config::ModelConfig& model, std::int64_t ranks, std::int64_t parts);

// Machines of a two-hop dispatch: the first hop crosses machines, the second stays within one
// (dispatch_traffic.h). nullopt: one hop, directly to each rank.
std::optional<std::int64_t> machines_of_hops(const config::Config& config);

// One transfer of one rank. If CPU ranks differ, of the one that sends most to other machines. A
// MoE layer has four transfers per micro-batch: dispatch and combine, forward and backward.
struct DispatchNumbers {
  std::int64_t tokens = 0;            // per rank
  std::int64_t ranks = 1;             // ranks that hold the experts
  std::int64_t machines = 1;          // machines of those ranks: joined by NVLink or shared memory
  double rows = 0;                    // sent to other ranks
  double rows_between_machines = 0;   // part of `rows` that leaves the machine
  double bytes = 0;                   // bytes of `rows`
  double bytes_between_machines = 0;  // bytes of `rows_between_machines`
};
// Expectation of dispatch_traffic.h; GPU flex backends work differently. All 0 if the experts are
// on one rank. Requires a legal config.
DispatchNumbers dispatch_of(const config::Config& config);

}  // namespace weft::derive
