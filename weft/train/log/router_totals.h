// Sums over the routers of a step: auxiliary losses, and rows per expert.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/config/model_config.h"
#include "weft/grid/grid.h"
#include "weft/model/moe/balance.h"
#include "weft/tensor/tensor.h"

namespace weft::train {

// Means over MoE layers, micro-batches and the ranks of a stage; without coefficients.
struct RouterLosses {
  double batch = 0, sequence = 0, global = 0;  // aux_loss, seq_aux_loss, global_aux_loss
  double z = 0;
};

// Loads of one layer's experts in one step, relative to their mean; 1 is even.
struct ExpertLoads {
  int layer = 0;
  double max = 0, p95 = 0, p50 = 0;  // largest load, and percentiles over the experts
  std::int64_t dropped = 0;          // slots dropped by an expert at its capacity
};
ExpertLoads loads_of(int layer, std::span<const std::int64_t> rows, std::int64_t dropped);

class RouterTotals {
 public:
  RouterTotals(tensor::Pool& pool, const config::ModelConfig& model, int world);

  // Call before a step, with all streams idle. An unfinished step leaves nothing behind.
  void begin(tensor::Stream& stream);
  // Sums that the pieces of a layer add to.
  model::RouterSums of_layer(int layer) const;
  // Gathers every rank's losses; replaces this rank's rows by the sum over all ranks.
  void gather(tensor::Stream& stream, comm::Communicator& world) const;

  // Rows of a layer's experts, int64 (E); valid after the gather.
  tensor::Tensor rows(int layer) const;
  // Host copy of the sums.
  struct Numbers {
    std::vector<float> losses;
    std::vector<std::int64_t> rows;
  };
  // Enqueues the copies; the numbers are valid once the host has waited for the stream.
  Numbers download(tensor::Stream& stream) const;
  RouterLosses losses(const Numbers& numbers,
                      const grid::Grid& grid,
                      std::int64_t micro_batches) const;
  std::vector<ExpertLoads> loads(const Numbers& numbers) const;  // by MoE layer of the model

 private:
  std::int64_t experts_;
  std::vector<int> moe_layers_;             // in the whole model
  tensor::Tensor own_losses_, all_losses_;  // fp32 (4), (world, 4)
  tensor::Tensor rows_;                     // int64 (layers, E), then dropped slots (layers)
  tensor::Tensor global_;                   // int64 (layers, E); undefined without global_aux_loss
};

}  // namespace weft::train
