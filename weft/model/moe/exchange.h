// The counts that all ranks exchange, and what the host learns from them: how many rows go where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/kernels/kernels.h"
#include "weft/model/context.h"

namespace weft::model {

// What every rank of the group sealed (kernels::seal_counts), (G, N), from what this one did; uses
// counts_N up. Who plans with them opens them: the device, where the host never learns, or the
// host.
Tensor gather_counts(const Context&, comm::Communicator& ep, Tensor counts_N);

// A copy that the host may read, once it has waited for it. No kernel makes it: beside a product
// that fills a GPU it would wait for the product's end.
Tensor show_to_host(const Context&, const Tensor& counts_GN);

// By the host, in place: SystemError names the member whose numbers did not arrive as they were
// sent.
void open_counts(const Tensor& shown_GN);

// Row by row; they may be columns of what was shown.
std::vector<std::int64_t> counts_on_host(const Tensor& shown_GN);

struct Exchange {
  std::vector<std::int64_t> send_rows;     // to each rank of the group
  std::vector<std::int64_t> receive_rows;  // from each rank
  // The same for each expert of the rank that they go to, rank by rank.
  std::vector<std::int64_t> send_blocks, receive_blocks;
  std::vector<std::int64_t> expert_rows;  // for each local expert
  std::int64_t received = 0;
  // What arrives by source rank, then expert, is wanted by expert, then source rank. Empty where
  // the two orders are the same.
  std::vector<kernels::RowBlock> to_expert_order, to_wire_order;
};

// counts_GE: rows for every expert (global) from each of G ranks, row by row. Counts come from
// other ranks, so they are checked: not negative, and at most `most_rows` in all from each rank
// (SystemError naming the member).
Exchange plan_exchange(std::span<const std::int64_t> counts_GE,
                       std::int64_t ranks,
                       std::int64_t rank,
                       std::int64_t experts,
                       std::int64_t most_rows);

}  // namespace weft::model
