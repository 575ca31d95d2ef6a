// The mainloop of a consumer warpgroup: it waits for k-blocks, multiplies them by wgmma and
// releases their stages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft/kernels/cuda/hopper/epilogue.h"
#include "weft/kernels/cuda/hopper/pipeline.h"

namespace weft::kernels::cuda::hopper {

// Clears both factors behind the expert's last row: rows of other experts lie there. Both must be
// zero, since zero times infinity is not zero.
template <typename T>
__device__ void clear_rows_behind(SharedStorage<T>& shared,
                                  int stage,
                                  int rows,
                                  const Consumer& consumer) {
  consumer.warpgroup_sync();  // any thread may have read what the stage held before
  const auto clear = [&](std::byte* box, int from, int box_rows) {
    for (int at = max(from, 0) * kBoxRowBytes + consumer.thread * 16; at < box_rows * kBoxRowBytes;
         at += kWarpgroupThreads * 16) {
      *reinterpret_cast<uint4*>(box + at) = uint4{};
    }
  };
  for (int box = 0; box < T::kBoxesOfA; ++box) {
    clear(shared.a[stage] + box * kBoxBytes, rows, kBoxRows);
  }
  for (int half = 0; half < 2; ++half) {
    for (int box = 0; box < T::kBoxesOfB; ++box) {
      clear(shared.b[stage] + half * T::kHalfOfB + box * (kBoxBytes / 2),
            rows - half * T::kHalfDepth,
            T::kHalfDepth);
    }
  }
  fence_async_proxy();
  consumer.warpgroup_sync();
}

// Waits for the k-block of the current stage, and clears what does not belong to it.
template <typename T>
__device__ __forceinline__ void await_k_block(SharedStorage<T>& shared,
                                              const PipelineState<T::kStages>& state,
                                              const WorkTile& tile,
                                              int k_block,
                                              const Consumer& consumer) {
  mbarrier_wait(shared.full[state.stage], state.phase);
  if constexpr (T::kGrouped == Grouped::K) {
    const int rows = tile.depth - k_block * T::kTile.k;
    if (rows < T::kTile.k) clear_rows_behind(shared, state.stage, rows, consumer);
  }
}

// Advance of b's descriptor to wgmma i of a k-block.
template <typename T>
__device__ constexpr int advance_of_b(int i) {
  if constexpr (T::kB == SumOver::Columns) return i * kMmaStep<T::kB>;
  constexpr int kSteps = T::kHalfDepth / kMmaK;
  return i / kSteps * (T::kHalfOfB / kDescriptorUnit) + i % kSteps * kMmaStep<T::kB>;
}

// Tiles of this consumer: all tiles of the block, or every second one in ping-pong.
template <typename T>
class ConsumerTiles {
 public:
  __device__ ConsumerTiles(SharedStorage<T>& shared,
                           const Consumer& consumer,
                           const Problem& problem)
      : shared_(shared),
        consumer_(consumer),
        problem_(problem),
        scheduler_(problem),
        parity_(consumer.group == 0 ? 1 : 0) {}

  PipelineState<T::kStages> state;

  // False: no tiles are left. The state skips the stages of the other consumer's tiles.
  __device__ bool first(WorkTile& tile) {
    return scheduler_.next(tile) && (!T::kPingPong || consumer_.group == 0 || skip(tile));
  }
  __device__ bool next(WorkTile& tile) {
    return scheduler_.next(tile) && (!T::kPingPong || skip(tile));
  }

  // Consumers issue their wgmmas in turn; consumer 0 begins. Every phase of a ping-pong barrier is
  // waited for, also if nothing depends on it.
  __device__ void await_turn() {
    if constexpr (T::kPingPong) {
      mbarrier_wait(shared_.last_k_block[consumer_.group], parity_);
      mbarrier_wait(shared_.issued[consumer_.group], parity_);
      parity_ ^= 1;
    }
  }
  __device__ void end_turn() const {
    if constexpr (T::kPingPong) {
      __syncwarp();
      if (consumer_.lane == 0) mbarrier_arrive(shared_.issued[1 - consumer_.group]);
    }
  }

  // A stage tells apart its current phase and the one before, and no others. So a consumer waits
  // for stages behind the other's k-blocks only once the other has its last one.
  __device__ void await_last_k_block() {
    if constexpr (T::kPingPong) mbarrier_wait(shared_.last_k_block[consumer_.group], parity_);
  }
  // Every thread arrives, since each may have cleared a part of that k-block. `issued` orders this
  // too, by one thread per warp, but compute-sanitizer's racecheck does not follow it.
  __device__ void announce_last_k_block() const {
    if constexpr (T::kPingPong) mbarrier_arrive(shared_.last_k_block[1 - consumer_.group]);
  }

 private:
  __device__ bool skip(WorkTile& tile) {
    state.skip(stages_of<T>(tile, problem_));
    return scheduler_.next(tile);
  }

  SharedStorage<T>& shared_;
  const Consumer& consumer_;
  const Problem& problem_;
  TileScheduler<T::kGrouped, T::kTile.m, T::kTile.cluster> scheduler_;
  std::uint32_t parity_;
};

// Issues the wgmmas of all k-blocks of a tile. Those of the last are still in flight afterwards,
// and its stage is not released.
template <typename T>
__device__ __forceinline__ void mainloop(typename T::Accumulators& acc,
                                         SharedStorage<T>& shared,
                                         ConsumerTiles<T>& tiles,
                                         const WorkTile& tile,
                                         bool accumulate,
                                         const Consumer& consumer) {
  PipelineState<T::kStages>& state = tiles.state;
  const int k_blocks = k_blocks_of<T>(tile);
  int k_block = 0, before = 0;
  do {
    await_k_block(shared, state, tile, k_block, consumer);
    if (k_block == k_blocks - 1) tiles.announce_last_k_block();
    const std::uint64_t a =
        shared_descriptor<T::kA>(shared.a[state.stage] + consumer.first_row<T>() * kBoxRowBytes);
    const std::uint64_t b = shared_descriptor<T::kB>(shared.b[state.stage], T::kHalfDepth);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < T::kTile.k / kMmaK; ++i) {
#pragma unroll
      for (int mma = 0; mma < T::kMmas; ++mma) {
        wgmma<T::kA, T::kB>(acc[mma],
                            a + mma * (kBoxBytes / kDescriptorUnit) + i * kMmaStep<T::kA>,
                            b + advance_of_b<T>(i),
                            accumulate || k_block + i > 0);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (k_block > 0) release_stage(shared, before, consumer.lane);
    before = state.stage;
    state.advance();
  } while (++k_block < k_blocks);
}

template <typename T>
__device__ __forceinline__ void fence_all_accumulators(typename T::Accumulators& acc) {
#pragma unroll
  for (int mma = 0; mma < T::kMmas; ++mma) fence_accumulators(acc[mma]);
}

// Releases the stages of a tile that this consumer does not multiply: the cluster's other block may
// still load them for both.
template <typename T>
__device__ void pass_stages(SharedStorage<T>& shared,
                            PipelineState<T::kStages>& state,
                            int stages,
                            const Consumer& consumer) {
  for (int i = 0; i < stages; ++i, state.advance()) {
    mbarrier_wait(shared.full[state.stage], state.phase);
    __syncwarp();
    release_stage(shared, state.stage, consumer.lane);
  }
}

template <typename T>
__device__ __forceinline__ void clear(typename T::Accumulators& acc) {
#pragma unroll
  for (int mma = 0; mma < T::kMmas; ++mma) {
#pragma unroll
    for (int i = 0; i < T::kAccumulators; ++i) acc[mma][i] = 0;
  }
}
// Reads what the producer preloaded.
template <typename T>
__device__ __forceinline__ void take_preloads(typename T::Accumulators& acc,
                                              SharedStorage<T>& shared,
                                              ConsumerTiles<T>& tiles,
                                              const Consumer& consumer) {
  PipelineState<T::kStages>& state = tiles.state;
  tiles.await_last_k_block();
#pragma unroll
  for (int part = 0; part < T::kPreloads; ++part, state.advance()) {
    mbarrier_wait(shared.full[state.stage], state.phase);
#pragma unroll
    for (int box = 0; box < T::kPreloadBoxes; ++box) {
      const int at = part * (T::kPreloadColumns / 2) + box * (kBoxColumns32 / 2);
      read_box32(acc[0] + at, shared.a[state.stage] + box * kBoxBytes, consumer);
      read_box32(acc[1] + at, shared.b[state.stage] + box * kBoxBytes, consumer);
    }
    fence_async_proxy();
    __syncwarp();
    release_stage(shared, state.stage, consumer.lane);
  }
}

// Prepares the accumulators of a tile, and waits for this consumer's turn. The first wgmma assigns,
// unless something was preloaded.
template <typename T>
__device__ __forceinline__ void begin_tile(typename T::Accumulators& acc,
                                           SharedStorage<T>& shared,
                                           ConsumerTiles<T>& tiles,
                                           const WorkTile& tile,
                                           const Problem& problem,
                                           const Consumer& consumer) {
  if constexpr (T::kGrouped == Grouped::M) {
    if (tile.depth == 0) clear<T>(acc);
    tiles.await_turn();
  } else if (const Store store = store_of(tile, problem); store == Store::Reduce) {
    tiles.await_turn();
    // The cache adds more when fewer ask it at once. And the tile before may have used the boxes of
    // the epilogue in another way.
    if (consumer.leads()) tma_store_wait_read<0>();
  } else {
    if (store == Store::Assign) {
      if (tile.depth == 0) clear<T>(acc);
    } else {
      take_preloads(acc, shared, tiles, consumer);
    }
    tiles.await_turn();
  }
  fence_all_accumulators<T>(acc);
}

template <typename T>
__device__ void consume(SharedStorage<T>& shared, const TensorMaps& maps, const Problem& problem) {
  using Epilogue = std::conditional_t<T::kGrouped == Grouped::M, RowEpilogue<T>, WgradEpilogue<T>>;
  const Consumer consumer;
  ConsumerTiles<T> tiles(shared, consumer, problem);
  Epilogue epilogue(shared, maps, problem);
  WorkTile tile;
  bool more = tiles.first(tile);
  while (more) {
    const WorkTile now = tile;
    if (now.row + consumer.first_row<T>() >= now.height ||
        now.column_tile * T::kTile.n >= problem.n || is_nothing<T>(now, problem)) {
      tiles.await_turn();
      pass_stages(shared, tiles.state, stages_of<T>(now, problem), consumer);
      tiles.announce_last_k_block();
      tiles.end_turn();
      more = tiles.next(tile);
      continue;
    }
    typename T::Accumulators acc;
    begin_tile(acc, shared, tiles, now, problem, consumer);
    if (now.depth > 0) {
      const bool accumulate = T::kGrouped == Grouped::K && store_of(now, problem) == Store::Preload;
      mainloop(acc, shared, tiles, now, accumulate, consumer);
      tiles.end_turn();
      const int last = (tiles.state.stage + T::kStages - 1) % T::kStages;
      more = tiles.next(tile);  // while the last wgmmas are in flight
      wgmma_wait<0>();
      fence_all_accumulators<T>(acc);
      release_stage(shared, last, consumer.lane);
    } else {
      tiles.announce_last_k_block();
      tiles.end_turn();
      more = tiles.next(tile);
    }
    epilogue.store(acc, now, consumer);
  }
  if (consumer.leads()) tma_store_wait();
}

}  // namespace weft::kernels::cuda::hopper
