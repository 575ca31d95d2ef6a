// An expert keeps its `capacity` best slots. Better is a larger ordinal of the probability, then
// the earlier slot. If the first tokens stay, all ordinals are equal.
//
// The first step finds the ordinal of each expert's last kept slot, eight bits at a time: it counts
// the slots by their next digit, and takes the digit at which the capacity is reached. The second
// step keeps the first slots with that very ordinal. The slots are cut into runs, one per warp. A
// slot's place among its equals is their number in the runs before its own, and before it in its
// run.
#include <algorithm>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/cuda/router/ordinal.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {
namespace drop_over_capacity_kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
constexpr int kDigitsOfLane = kDigits / kWarp;

struct Dropping {
  std::int64_t slots, experts, capacity;
  Keep keep;
  const float* p;
  const std::int32_t* expert_of;
  float* kept_p;
  std::int32_t* kept_expert_of;
  std::int64_t* dropped;

  // State between the kernels.
  std::int64_t run = 0, runs = 0;         // slots in a run, a multiple of 32; runs
  std::uint32_t* digit_counts = nullptr;  // (experts, kDigits)
  std::uint32_t* least = nullptr;         // (experts): ordinal of the last slot that stays
  std::uint32_t* better = nullptr;        // (experts): slots with a larger one
  // (experts, runs): slots with that very ordinal; then such slots in the runs before
  std::uint32_t* equal = nullptr;
};

// Slot of an expert. expert is -1 beyond the last slot, and for an expert that does not exist.
struct Slot {
  std::int64_t index;
  std::int32_t expert;
  std::uint32_t ordinal;
};

__device__ Slot slot_at(const Dropping& d, std::int64_t index) {
  if (index >= d.slots) return {index, -1, 0};
  const std::int32_t e = d.expert_of[index];
  if (e < 0 || e >= d.experts) return {index, -1, 0};
  return {index, e, d.keep == Keep::MostProbable ? ordinal(d.p[index]) : 0};
}

// Lanes with the same value. The first of them acts for all.
struct Peers {
  unsigned lanes;

  __device__ int count() const { return __popc(lanes); }
  __device__ int before() const { return __popc(lanes & lanes_below()); }
};

__device__ Peers peers_of(std::int64_t value) {
  return {__match_any_sync(kAllLanes, static_cast<unsigned long long>(value))};
}

// Counts the slots whose higher digits are those of `least`.
__global__ void count_digits(Dropping d, int shift) {
  for (std::int64_t begin = first_warp() * kWarp; begin < d.slots; begin += warp_step() * kWarp) {
    const Slot slot = slot_at(d, begin + lane());
    std::int64_t place = -1;
    if (slot.expert >= 0) {
      const std::uint64_t differs = slot.ordinal ^ d.least[slot.expert];
      const std::uint32_t digit = slot.ordinal >> shift & (kDigits - 1);
      if (differs >> (shift + kDigitBits) == 0) {
        place = std::int64_t(slot.expert) * kDigits + digit;
      }
    }
    const Peers peers = peers_of(place);
    if (place >= 0 && peers.before() == 0) {
      atomicAdd(d.digit_counts + place, std::uint32_t(peers.count()));
    }
  }
}

// Finds the next digit of each expert. A warp takes an expert, a lane eight digits, the largest
// first. It is the digit at which the better slots and those of this and larger digits reach the
// capacity; 0: they never do. The counts are zero afterwards.
__global__ void take_digits(Dropping d, int shift) {
  for (std::int64_t e = first_warp(); e < d.experts; e += warp_step()) {
    std::uint32_t* counts = d.digit_counts + e * kDigits;
    const int first = kDigits - 1 - lane() * kDigitsOfLane;
    std::int64_t own = 0;
    for (int i = 0; i < kDigitsOfLane; ++i) own += counts[first - i];
    std::int64_t above = own;  // first with this lane's own
    for (int step = 1; step < kWarp; step *= 2) {
      const std::int64_t other = __shfl_up_sync(kAllLanes, above, step);
      if (lane() >= step) above += other;
    }
    const std::int64_t better = d.better[e];
    const unsigned reached = __ballot_sync(kAllLanes, better + above >= d.capacity);
    above -= own;
    if (lane() == (reached == 0 ? kWarp - 1 : __ffs(int(reached)) - 1)) {
      int digit = first;
      for (int i = 1; i < kDigitsOfLane; ++i) {
        if (better + above + counts[digit] >= d.capacity) break;
        above += counts[digit--];
      }
      d.least[e] |= std::uint32_t(digit) << shift;
      d.better[e] = std::uint32_t(better + above);
    }
    for (int i = 0; i < kDigitsOfLane; ++i) counts[first - i] = 0;
  }
}

__device__ std::uint32_t* equal_of(const Dropping& d, const Slot& slot, std::int64_t run) {
  const bool equal = slot.expert >= 0 && slot.ordinal == d.least[slot.expert];
  return equal ? d.equal + slot.expert * d.runs + run : nullptr;
}

__global__ void count_equal(Dropping d) {
  for (std::int64_t begin = first_warp() * kWarp; begin < d.slots; begin += warp_step() * kWarp) {
    const Slot slot = slot_at(d, begin + lane());
    std::uint32_t* count = equal_of(d, slot, begin / d.run);
    const Peers peers = peers_of(reinterpret_cast<std::int64_t>(count));
    if (count != nullptr && peers.before() == 0) atomicAdd(count, std::uint32_t(peers.count()));
  }
}

// Turns counts of the runs into counts of the runs before. A warp takes an expert.
__global__ void sum_equal(Dropping d) {
  for (std::int64_t e = first_warp(); e < d.experts; e += warp_step()) {
    std::uint32_t before = 0;
    for (std::int64_t begin = 0; begin < d.runs; begin += kWarp) {
      const std::int64_t run = begin + lane();
      std::uint32_t* count = d.equal + e * d.runs + run;
      const std::uint32_t own = run < d.runs ? *count : 0;
      std::uint32_t sum = own;
      for (int step = 1; step < kWarp; step *= 2) {
        const std::uint32_t other = __shfl_up_sync(kAllLanes, sum, step);
        if (lane() >= step) sum += other;
      }
      if (run < d.runs) *count = before + sum - own;
      before += __shfl_sync(kAllLanes, sum, kWarp - 1);
    }
  }
}

// True if the slot stays. Its equals are counted on. Every lane of the run's warp takes part.
__device__ bool stays(const Dropping& d, const Slot& slot, std::int64_t run) {
  std::uint32_t* count = equal_of(d, slot, run);
  const Peers peers = peers_of(reinterpret_cast<std::int64_t>(count));
  const std::int64_t before = count != nullptr ? *count : 0;
  __syncwarp();
  if (count != nullptr && peers.before() == 0) *count = std::uint32_t(before + peers.count());
  __syncwarp();
  if (slot.expert < 0) return true;
  if (count == nullptr) return slot.ordinal > d.least[slot.expert];
  return d.better[slot.expert] + before + peers.before() < d.capacity;
}

__global__ void drop(Dropping d, Faults faults) {
  std::int64_t dropped = 0;
  for (std::int64_t run = first_warp(); run < d.runs; run += warp_step()) {
    const std::int64_t end = min(d.slots, (run + 1) * d.run);
    for (std::int64_t begin = run * d.run; begin < end; begin += kWarp) {
      const Slot slot = slot_at(d, begin + lane());
      const bool kept = stays(d, slot, run);
      if (slot.index >= end) continue;
      const std::int32_t e = d.expert_of[slot.index];
      if (slot.expert < 0) faults.raise(FaultCode::ExpertOutOfRange, e, d.experts);
      d.kept_p[slot.index] = kept ? d.p[slot.index] : 0.0f;
      d.kept_expert_of[slot.index] = kept ? e : -1;
      dropped += !kept;
    }
  }
  dropped = block_sum(dropped);
  if (threadIdx.x == 0 && dropped > 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(d.dropped),
              static_cast<unsigned long long>(dropped));
  }
}

__global__ void pass_kept(float* dp,
                          const float* dkept,
                          const std::int32_t* experts,
                          std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    dp[i] = experts[i] < 0 ? 0.0f : dkept[i];
  }
}

// Runs as short as the room for their counts allows.
std::int64_t run_for(std::int64_t slots, std::int64_t experts) {
  constexpr std::int64_t kShortest = 1024, kMostCounts = 4 << 20;
  const std::int64_t fitting = (slots * experts + kMostCounts - 1) / kMostCounts;
  return (std::max(kShortest, fitting) + kWarp - 1) / kWarp * kWarp;
}

std::int64_t counters(const Dropping& d) { return d.experts * (kDigits + 2 + d.runs); }

void take_workspace(Stream& stream, Dropping& d) {
  d.run = run_for(d.slots, d.experts);
  d.runs = (d.slots + d.run - 1) / d.run;
  d.digit_counts = scratch<std::uint32_t>(stream, counters(d));
  d.least = d.digit_counts + d.experts * kDigits;
  d.better = d.least + d.experts;
  d.equal = d.better + d.experts;
}

// Grid whose warps take `rows`.
unsigned blocks_of(std::int64_t rows) {
  return blocks_for(std::max<std::int64_t>(rows, 1), kWarps);
}

void launch(const Dropping& d, const Faults& faults, cudaStream_t handle) {
  const unsigned slot_blocks = blocks_for(d.slots, kThreads);
  tensor::cuda::check(
      "cudaMemsetAsync",
      cudaMemsetAsync(d.digit_counts, 0, std::size_t(counters(d)) * sizeof(std::uint32_t), handle));
  if (d.keep == Keep::MostProbable) {
    for (int shift = 32 - kDigitBits; shift >= 0; shift -= kDigitBits) {
      count_digits<<<slot_blocks, kThreads, 0, handle>>>(d, shift);
      take_digits<<<blocks_of(d.experts), kThreads, 0, handle>>>(d, shift);
    }
  }
  count_equal<<<slot_blocks, kThreads, 0, handle>>>(d);
  sum_equal<<<blocks_of(d.experts), kThreads, 0, handle>>>(d);
  drop<<<blocks_of(d.runs), kThreads, 0, handle>>>(d, faults);
}

}  // namespace
}  // namespace drop_over_capacity_kernels

void drop_over_capacity_forward(Stream& stream,
                                Tensor kept_p,
                                Tensor kept_experts,
                                Tensor dropped,
                                Tensor p,
                                Tensor experts,
                                std::int64_t all,
                                std::int64_t capacity,
                                Keep keep) {
  drop_over_capacity_kernels::Dropping dropping{
      .slots = experts.elements(),
      .experts = all,
      .capacity = capacity,
      .keep = keep,
      .p = data<float>(stream, p),
      .expert_of = data<std::int32_t>(stream, experts),
      .kept_p = data<float>(stream, kept_p),
      .kept_expert_of = data<std::int32_t>(stream, kept_experts),
      .dropped = data<std::int64_t>(stream, dropped)};
  drop_over_capacity_kernels::take_workspace(stream, dropping);
  const Faults faults(stream);
  enqueue_all(stream, "drop_over_capacity_forward", WorkClass::Memory, [=](cudaStream_t handle) {
    if (dropping.slots > 0) drop_over_capacity_kernels::launch(dropping, faults, handle);
  });
}

void drop_over_capacity_dgrad(Stream& stream, Tensor dp, Tensor dkept_p, Tensor kept_experts) {
  const std::int64_t n = kept_experts.elements();
  enqueue(
      stream,
      "drop_over_capacity_dgrad",
      WorkClass::Memory,
      {blocks_for(n, drop_over_capacity_kernels::kThreads), drop_over_capacity_kernels::kThreads},
      drop_over_capacity_kernels::pass_kept,
      data<float>(stream, dp),
      data<float>(stream, dkept_p),
      data<std::int32_t>(stream, kept_experts),
      n);
}

}  // namespace weft::kernels::cuda
