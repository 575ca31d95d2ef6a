// Exchange of counts between all ranks, and the host's row plan from them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/kernels/kernels.h"
#include "weft/model/context.h"

namespace weft::model {

// Gathers the sealed counts (kernels::seal_counts) of all ranks, (G, N); consumes counts_N. The
// planner opens them: the device if the host never learns the counts, else the host.
Tensor gather_counts(const Context&, comm::Communicator& ep, Tensor counts_N);

// Host-visible copy, readable after waiting for it. No kernel makes the copy: beside a GEMM that
// fills the GPU, a kernel would wait for the GEMM's end.
Tensor show_to_host(const Context&, const Tensor& counts_GN);

// Opens counts on the host, in place. Throws SystemError naming the member whose counts arrived
// damaged.
void open_counts(const Tensor& shown_GN);

// Row-major values; the tensor may be columns of a larger one.
std::vector<std::int64_t> counts_on_host(const Tensor& shown_GN);

struct Exchange {
  std::vector<std::int64_t> send_rows;     // to each rank of the group
  std::vector<std::int64_t> receive_rows;  // from each rank
  // By expert within each rank of the group.
  std::vector<std::int64_t> send_blocks, receive_blocks;
  std::vector<std::int64_t> expert_rows;  // for each local expert
  std::int64_t received = 0;
  // Block moves from arrival order (source rank, expert) to expert order (expert, source rank), and
  // back. Empty if the orders are equal.
  std::vector<kernels::RowBlock> to_expert_order, to_wire_order;
};

// counts_GE: rows for every global expert from each of G ranks, row-major. Counts come from other
// ranks, so they are checked: not negative, and at most `most_rows` in total from each rank. Throws
// SystemError naming the member.
Exchange plan_exchange(std::span<const std::int64_t> counts_GE,
                       std::int64_t ranks,
                       std::int64_t rank,
                       std::int64_t experts,
                       std::int64_t most_rows);

}  // namespace weft::model
