// Constants of the kernel, all derived from a pass and a Tile. The compiler rejects tiles that the
// kernel cannot serve.
#pragma once

#include "weft/kernels/cuda/hopper/scheduler.h"
#include "weft/kernels/cuda/hopper/wgmma.h"

namespace weft::kernels::cuda::hopper {

using kernels::hopper::Pass;
using kernels::hopper::Schedule;
using kernels::hopper::Tile;

using kernels::hopper::kConsumers;

inline constexpr int kWarpgroupThreads = 128, kWarpgroupWarps = kWarpgroupThreads / 32;
inline constexpr int kConsumerThreads = kConsumers * kWarpgroupThreads;
inline constexpr int kThreads = kConsumerThreads + kWarpgroupThreads;  // and the producer's
// Registers of a thread at the launch, of a multiprocessor's 64 Ki. setmaxnreg moves them later.
inline constexpr int kLaunchRegisters = 65536 / kThreads / 8 * 8;

// Columns of a box of fp32 results.
inline constexpr int kBoxColumns32 = kBoxRowBytes / int(sizeof(float));

template <Pass kPassValue, Tile kTileValue>
struct Traits {
  static constexpr Pass kPass = kPassValue;
  static constexpr Tile kTile = kTileValue;
  static constexpr Schedule kSchedule = kernels::hopper::schedule_of(kPass);
  static constexpr bool kPingPong = kSchedule == Schedule::PingPong;
  static constexpr Grouped kGrouped = kPass == Pass::Wgrad ? Grouped::K : Grouped::M;
  // Index of each factor, as it lies in memory, that the product sums over.
  static constexpr SumOver kA = kPass == Pass::Wgrad ? SumOver::Rows : SumOver::Columns;
  static constexpr SumOver kB = kPass == Pass::Forward ? SumOver::Columns : SumOver::Rows;

  // Stages.
  static constexpr int kStages = kTile.stages;
  static constexpr int kBoxesOfA = kTile.m / kBoxRows, kBoxesOfB = kTile.n / kBoxRows;
  static constexpr int kStageBytes = (kBoxesOfA + kBoxesOfB) * kBoxBytes;
  // Each block of a cluster loads half of b: half of its columns, or half of the k-block's depth if
  // b is summed over its rows.
  static constexpr int kHalfOfB = kBoxesOfB * kBoxBytes / 2;
  static constexpr int kHalfDepth = kTile.k / 2;

  // Consumers.
  static constexpr int kConsumerM = kPingPong ? kTile.m : kTile.m / kConsumers;
  static constexpr int kMmas = kConsumerM / kMmaM;   // wgmmas of a consumer per depth of kMmaK
  static constexpr int kAccumulators = kTile.n / 2;  // per thread and wgmma
  static constexpr int kReaderWarps = kPingPong ? kWarpgroupWarps : kConsumers * kWarpgroupWarps;
  using Accumulators = float[kMmas][kAccumulators];

  // Preloading of accumulators: a stage brings two boxes of fp32 for the upper 64 rows in place of
  // a, and two for the lower 64 in place of b.
  static constexpr int kPreloadBoxes = 2, kPreloadColumns = kPreloadBoxes * kBoxColumns32;
  static constexpr int kPreloads = kTile.n / kPreloadColumns;  // stages that a tile takes

  static constexpr int kEpilogueBoxes = kernels::hopper::epilogue_boxes(kSchedule);

  static constexpr int kConsumerRegisters = kTile.consumer_registers;
  static constexpr int kProducerRegisters =
      kLaunchRegisters * (kConsumers + 1) - kConsumerRegisters * kConsumers;

  static_assert(kTile.k * 2 == kBoxRowBytes, "a k-block is one span of the swizzle deep");
  static_assert(kTile.m % kBoxRows == 0 && kConsumerM % kMmaM == 0, "m is in whole wgmmas");
  static_assert(kTile.m <= 256, "one TMA box brings a");
  static_assert(kTile.n == 128 || kTile.n == 192 || kTile.n == 256, "wgmma.h has these widths");
  static_assert(kTile.cluster == 1 || kTile.cluster == 2, "b is loaded in two halves");
  static_assert(kStages >= 2, "a consumer holds one stage while the producer fills another");
  static_assert(kernels::hopper::shared_bytes(kPass, kTile) <= kernels::hopper::kMostSharedBytes,
                "stages and boxes fit the shared memory of a block");
  static_assert(kConsumerRegisters % 8 == 0 && kConsumerRegisters <= 255, "setmaxnreg's limits");
  static_assert(kProducerRegisters % 8 == 0 && kProducerRegisters >= 24, "setmaxnreg's limits");
  static_assert(kMmas * kAccumulators + 40 <= kConsumerRegisters, "accumulators and addresses");
  static_assert(kGrouped == Grouped::M || (kMmas == 2 && kPreloads <= kStages),
                "preloading has an upper and a lower half, and fits the stages");
};

// This thread's place among the consumers.
struct Consumer {
  int group = int(threadIdx.x) / kWarpgroupThreads;   // warpgroup
  int thread = int(threadIdx.x) % kWarpgroupThreads;  // index within the warpgroup
  int warp = thread / 32, lane = thread % 32;

  // Barriers 2 and 3: one per warpgroup.
  __device__ void warpgroup_sync() const { named_barrier_sync(2 + group, kWarpgroupThreads); }
  __device__ bool leads() const { return thread == 0; }
  // First row of this warpgroup in the block's tile.
  template <typename T>
  __device__ int first_row() const {
    return T::kPingPong ? 0 : group * T::kConsumerM;
  }
};

}  // namespace weft::kernels::cuda::hopper
