// The few numbers that ranks exchange at the end of a step, and what follows from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"
#include "weft/train/groups.h"

namespace weft::train {

// What all ranks know after a step; the same on every rank, to the bit.
struct StepTotals {
  double loss = 0;           // mean over the global batch
  double gradient_norm = 0;  // of the whole model
  // Mean over MoE layers, micro-batches and the ranks of a stage; without coefficient.
  double balance_loss = 0;
  double z_loss = 0;
  bool stop_requested = false;  // by any rank
  bool overflowed = false;      // a rank got more rows than its budget: the step is worth nothing
  std::vector<std::optional<double>> rank_losses;  // mean of each rank that has the head
  std::vector<double>
      rank_square_norms;  // of each rank's own gradients, for naming who is not finite
};

// This rank's numbers on their way: written by the host and by the step's nodes, gathered, read.
class Totals {
 public:
  Totals(tensor::Pool& pool, int world, std::int64_t micro_batches, std::int64_t moe_layers);

  // Before a step, with all streams idle.
  void begin(std::span<const std::int64_t> labelled);
  // Any time before the gather is issued.
  void request_stop();

  tensor::Tensor loss_sum(std::int64_t micro_batch) const;  // fp64 (1)
  tensor::Tensor dense_square_norm() const;                 // fp64 (1)
  tensor::Tensor expert_square_norm() const;
  tensor::Tensor overflow() const;      // fp64 (1): budgets that were too small
  tensor::Tensor balance_loss() const;  // fp32 (1)
  tensor::Tensor z_loss() const;

  void gather(tensor::Stream& stream, comm::Communicator& world) const;
  // After the gather (or, with one rank, after the nodes that write) is over.
  StepTotals read(const grid::Grid& grid) const;

 private:
  double mean_loss(const double* own) const;  // of one rank's row

  int world_;
  std::int64_t micro_batches_, moe_layers_;
  tensor::Tensor own_, all_;                // fp64 (N), (world, N)
  tensor::Tensor own_router_, all_router_;  // fp32 (2), (world, 2)
};

}  // namespace weft::train
