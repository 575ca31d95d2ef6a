// What the routers of a step add up: auxiliary losses, and how many rows went to each expert.
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

// The loads of one layer's experts in one step, over their mean; 1 is even.
struct ExpertLoads {
  int layer = 0;
  double max = 0, p95 = 0, p50 = 0;  // the largest, and percentiles of the experts
  std::int64_t dropped = 0;          // slots that their expert had no room for
};
ExpertLoads loads_of(int layer, std::span<const std::int64_t> rows, std::int64_t dropped);

class RouterTotals {
 public:
  RouterTotals(tensor::Pool& pool, const config::ModelConfig& model, int world);

  // Before a step, with all streams idle. A step that is not finished leaves nothing behind.
  void begin(tensor::Stream& stream);
  // What the pieces of a layer add to.
  model::RouterSums of_layer(int layer) const;
  // Every rank's losses, and the sum of all ranks' rows in place of this one's.
  void gather(tensor::Stream& stream, comm::Communicator& world) const;

  // After the gather: the rows of a layer's experts, int64 (E).
  tensor::Tensor rows(int layer) const;
  // What the host reads then.
  struct Numbers {
    std::vector<float> losses;
    std::vector<std::int64_t> rows;
  };
  // Enqueues the copies; the numbers are there when the host has waited for the stream.
  Numbers download(tensor::Stream& stream) const;
  RouterLosses losses(const Numbers& numbers,
                      const grid::Grid& grid,
                      std::int64_t micro_batches) const;
  std::vector<ExpertLoads> loads(const Numbers& numbers) const;  // of every MoE layer of the model

 private:
  std::int64_t experts_;
  std::vector<int> moe_layers_;             // of the whole model
  tensor::Tensor own_losses_, all_losses_;  // fp32 (4), (world, 4)
  tensor::Tensor rows_;                     // int64 (layers, E), then dropped slots (layers)
  tensor::Tensor global_;                   // int64 (layers, E); undefined without global_aux_loss
};

}  // namespace weft::train
