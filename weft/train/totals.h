// Numbers that ranks exchange at the end of a step, and values derived from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"
#include "weft/train/groups.h"
#include "weft/train/log/router_totals.h"

namespace weft::train {

// Totals of a step, bit-identical on all ranks.
struct StepTotals {
  double loss = 0;           // mean over the global batch
  double gradient_norm = 0;  // norm over the whole model
  RouterLosses router_losses;
  std::vector<ExpertLoads> expert_loads;  // by MoE layer
  bool stop_requested = false;            // by any rank
  bool time_is_up = false;                // on any rank
  bool overflowed = false;  // true if a rank exceeded its row budget: the step is invalid
  // True if the step ran again without the budget; these are the numbers of that run.
  bool repeated = false;
  std::vector<std::optional<double>> rank_losses;  // mean loss of each rank with the head
  std::vector<double> rank_square_norms;  // each rank's own gradients, to name the non-finite rank
};

bool is_finite(const StepTotals& totals);

// Request of one rank to all ranks, sent with the step's totals.
enum class Ask { Stop = 1, Leave = 2, Fail = 4 };

// Number of ranks over which a sum of squares is spread, among the ranks with the same parameters.
// 1: each replica has the sum over all its gradients. More: each rank of an instance of the
// distributed optimizer has the sum over its own part.
struct Squares {
  std::int64_t dense = 1, expert = 1;
};
Squares squares_of(const config::Config& config);

// True if this rank's value of a home counts in a total of the whole model: among replicas the
// first counts, or the first instance.
bool counts_in_total(const grid::Grid& grid, int rank, derive::Home home, const Squares& squares);

// This rank's totals in transit: written by the host and the step's nodes, then gathered and read.
class Totals {
 public:
  Totals(tensor::Pool& pool,
         const config::ModelConfig& model,
         int world,
         std::int64_t micro_batches,
         const Squares& squares = {});

  // Additional tensors that a step with this many extra micro-batches would hold.
  std::vector<tensor::Tensor> of_more(tensor::Pool& pool, std::int64_t micro_batches) const;

  // Call before a step, with all streams idle; waits for the stream.
  void begin(tensor::Stream& stream, std::span<const std::int64_t> labelled);
  // Call before the gather is issued. Stop and Leave reach all ranks; Fail makes the step
  // non-finite.
  void ask(Ask what);

  tensor::Tensor loss_sum(std::int64_t micro_batch) const;  // fp64 (1)
  tensor::Tensor dense_square_norm() const;                 // fp64 (1)
  tensor::Tensor expert_square_norm() const;
  tensor::Tensor overflow() const;  // fp64 (1): number of exceeded budgets
  const RouterTotals& router() const { return router_; }

  void gather(tensor::Stream& stream, comm::Communicator& world) const;
  // Call after the gather (with one rank: after the writing nodes); waits for the stream.
  StepTotals read(tensor::Stream& stream, const grid::Grid& grid, int loss_pp_rank) const;

 private:
  double mean_loss(const double* own) const;  // from one rank's row

  int world_;
  std::int64_t micro_batches_;
  Squares squares_;
  tensor::Tensor own_;         // fp64 (N); host-visible
  tensor::Tensor sent_, all_;  // in transit: fp64 (N), (world, N); with one rank own_
  RouterTotals router_;
};

}  // namespace weft::train
