// Rows from rank to rank, from the counts of all ranks. The table has a line per rank, a few
// hundred at most: one block reads it.
#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"
#include "weft/kernels/cuda/device/operations.h"

namespace weft::kernels::cuda {
namespace plan_hops_kernels {
namespace {

constexpr int kThreads = 1024, kWarps = kThreads / kWarp;

// Number that a rank announces, and its upper bound.
struct Announced {
  FaultCode code;
  std::int64_t count, most;

  __device__ bool bounded() const { return count >= 0 && count <= most; }
};

// Counts of all ranks. They come from other ranks, and are checked before they are used.
struct CountTable {
  Matrix<std::int64_t> counts;
  Hops hops;
  std::int64_t machines;

  __device__ std::int64_t to_machine(std::int64_t source, std::int64_t machine) const {
    return counts.row(source)[machine];
  }
  __device__ std::int64_t to_rank(std::int64_t source, std::int64_t rank) const {
    return counts.row(source)[hops.per_machine > 1 ? machines + rank : rank];
  }
  __device__ std::int64_t slots(std::int64_t source, std::int64_t rank) const {
    return counts.row(source)[counts.columns - hops.ranks + rank];
  }
  __device__ std::int64_t arriving(std::int64_t rank) const {
    std::int64_t sum = 0;
    for (std::int64_t source = 0; source < hops.ranks; ++source) sum += slots(source, rank);
    return sum;
  }

  // Numbers of a rank, in the order of the checks: the rows for each machine; for each rank the
  // rows, then the slots; at last the sum of the slots (`announced_slots`).
  __device__ std::int64_t numbers() const { return machines + 2 * hops.ranks + 1; }
  __device__ Announced announced(std::int64_t source, std::int64_t number) const {
    if (number < machines) {
      const std::int64_t rows = to_machine(source, number);
      return {FaultCode::RowsForMachineAnnounced, rows, hops.most_tokens};
    }
    const std::int64_t rank = (number - machines) / 2;
    const std::int64_t rows = to_rank(source, rank);
    if ((number - machines) % 2 == 0) {
      return {FaultCode::RowsForRankAnnounced, rows, hops.most_tokens};
    }
    return {FaultCode::SlotsForRankAnnounced, slots(source, rank), rows * hops.most_local};
  }
  __device__ Announced announced_slots(std::int64_t all) const {
    return {FaultCode::SlotsAnnounced, all, hops.most_tokens * hops.most_choices};
  }
};

// First number out of bounds of `source`; numbers(): none. A warp calls it.
__device__ std::int64_t first_wrong(const CountTable& table, std::int64_t source) {
  const std::int64_t in_all = table.numbers() - 1;
  std::int64_t wrong = table.numbers(), slots = 0;
  for (std::int64_t n = threadIdx.x % kWarp; n < in_all; n += kWarp) {
    const Announced number = table.announced(source, n);
    if (!number.bounded()) {
      wrong = n < wrong ? n : wrong;
    } else if (number.code == FaultCode::SlotsForRankAnnounced) {
      slots += number.count;
    }
  }
  slots = warp_sum(slots);
  wrong = -warp_max(-wrong);
  if (wrong > in_all && !table.announced_slots(slots).bounded()) wrong = in_all;
  return wrong;
}

// False: a member announces a number out of bounds, and a fault is raised. Every thread gets the
// answer.
__device__ bool check_counts(const CountTable& table, const Faults& faults) {
  __shared__ unsigned long long first;  // minimum over all sources
  if (threadIdx.x == 0) first = ~0ull;
  __syncthreads();
  const std::int64_t numbers = table.numbers();
  for (std::int64_t s = threadIdx.x / kWarp; s < table.hops.ranks; s += kWarps) {
    const std::int64_t wrong = first_wrong(table, s);
    if (wrong < numbers && threadIdx.x % kWarp == 0) {
      atomicMin(&first, static_cast<unsigned long long>(s * numbers + wrong));
    }
  }
  __syncthreads();
  if (first == ~0ull) return true;
  if (threadIdx.x == 0) {
    const auto place = static_cast<std::int64_t>(first);
    const std::int64_t source = place / numbers, number = place % numbers;
    std::int64_t all = 0;
    for (std::int64_t r = 0; r < table.hops.ranks && number == numbers - 1; ++r) {
      all += table.slots(source, r);
    }
    const Announced wrong =
        number == numbers - 1 ? table.announced_slots(all) : table.announced(source, number);
    faults.raise(wrong.code, source, wrong.count, wrong.most);
  }
  return false;
}

// False: the budget of a rank is too small. Every thread gets the answer.
__device__ bool budget_is_enough(const CountTable& table) {
  int over = 0;
  for (std::int64_t r = threadIdx.x; r < table.hops.ranks && table.hops.budget > 0; r += kThreads) {
    over |= table.arriving(r) > table.hops.budget;
  }
  return __syncthreads_or(over) == 0;
}

__device__ void split(const CountTable& table, std::int64_t* out) {
  const Hops& hops = table.hops;
  const std::int64_t n = hops.per_machine, machine = hops.rank / n, index = hops.rank % n;
  std::int64_t* send_across = out;
  std::int64_t* receive_across = send_across + table.machines;
  std::int64_t* send_within = receive_across + table.machines;
  std::int64_t* receive_within = send_within + n;
  std::int64_t* slots = receive_within + n;
  if (threadIdx.x == 0) *slots = table.arriving(hops.rank);
  for (std::int64_t other = threadIdx.x; other < table.machines; other += kThreads) {
    send_across[other] = table.to_machine(hops.rank, other);
    receive_across[other] = table.to_machine(other * n + index, machine);
  }
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
    std::int64_t sent = 0, received = 0;
    for (std::int64_t other = 0; other < table.machines; ++other) {
      sent += table.to_rank(other * n + index, machine * n + i);
      received += table.to_rank(other * n + i, hops.rank);
    }
    send_within[i] = sent;
    receive_within[i] = received;
  }
}

__global__ void __launch_bounds__(kThreads) plan(CountTable table,
                                                 std::int64_t* out,
                                                 std::int64_t splits,
                                                 double* overflow,
                                                 Faults faults) {
  if (!check_counts(table, faults)) return;
  if (budget_is_enough(table)) return split(table, out);
  for (std::int64_t i = threadIdx.x; i < splits; i += kThreads) out[i] = 0;
  if (threadIdx.x == 0) *overflow += 1;
}

__global__ void add_lines(std::int64_t* out,
                          std::int64_t local,
                          Matrix<std::int64_t> table,
                          std::int64_t first) {
  for (std::int64_t l = first_index(); l < local; l += index_step()) {
    std::int64_t sum = 0;
    for (std::int64_t g = 0; g < table.rows; ++g) sum += table.row(g)[first + l];
    out[l] = sum;
  }
}

}  // namespace
}  // namespace plan_hops_kernels

void plan_hops(Stream& stream, Tensor splits, Tensor overflow, Tensor counts, const Hops& hops) {
  const plan_hops_kernels::CountTable table{matrix<std::int64_t>(stream, counts),
                                            hops,
                                            hops.machines()};
  enqueue(stream,
          "plan_hops",
          WorkClass::Memory,
          Grid{1, plan_hops_kernels::kThreads},
          plan_hops_kernels::plan,
          table,
          data<std::int64_t>(stream, splits),
          hops.splits(),
          hops.budget > 0 ? data<double>(stream, overflow) : nullptr,
          Faults(stream));
}

void sum_counts(Stream& stream, Tensor rows, Tensor counts, std::int64_t first) {
  constexpr int kThreadsOfSum = 128;
  enqueue(stream,
          "sum_counts",
          WorkClass::Memory,
          Grid{blocks_for(rows.dim(0), kThreadsOfSum), kThreadsOfSum},
          plan_hops_kernels::add_lines,
          data<std::int64_t>(stream, rows),
          rows.dim(0),
          matrix<std::int64_t>(stream, counts),
          first);
}

}  // namespace weft::kernels::cuda
