// The few numbers that ranks exchange at the end of a step, and what follows from them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/comm/communicator.h"
#include "weft/tensor/tensor.h"
#include "weft/train/groups.h"
#include "weft/train/router_totals.h"

namespace weft::train {

// What all ranks know after a step; the same on every rank, to the bit.
struct StepTotals {
  double loss = 0;           // mean over the global batch
  double gradient_norm = 0;  // of the whole model
  RouterLosses router_losses;
  std::vector<ExpertLoads> expert_loads;  // by MoE layer
  bool stop_requested = false;            // by any rank
  bool time_is_up = false;                // says any rank
  bool overflowed = false;  // a rank got more rows than its budget: the step is worth nothing
  bool repeated = false;    // it was, and these are the numbers of the step without the budget
  std::vector<std::optional<double>> rank_losses;  // mean of each rank that has the head
  std::vector<double>
      rank_square_norms;  // of each rank's own gradients, for naming who is not finite
};

bool is_finite(const StepTotals& totals);

// What a rank may ask all of them for, told with the step's numbers.
enum class Ask { Stop = 1, Leave = 2, Fail = 4 };

// Over how many of the ranks that hold the same parameters their sum of squares is spread: one has
// that of all gradients it holds, as its replicas do, or each of an instance of the distributed
// optimizer that of its own part of them.
struct Squares {
  std::int64_t dense = 1, expert = 1;
};
Squares squares_of(const config::Config& config);

// Whether what a rank has of a home counts in a number of the whole model: replicas hold the same,
// and the first of them does, or the first instance.
bool counts_once(const grid::Grid& grid, int rank, derive::Home home, const Squares& squares);

// This rank's numbers on their way: written by the host and by the step's nodes, gathered, read.
class Totals {
 public:
  Totals(tensor::Pool& pool,
         const config::ModelConfig& model,
         int world,
         std::int64_t micro_batches,
         const Squares& squares = {});

  // What it would hold besides, had a step so many micro-batches more.
  std::vector<tensor::Tensor> of_more(tensor::Pool& pool, std::int64_t micro_batches) const;

  // Before a step, with all streams idle; waits for the stream.
  void begin(tensor::Stream& stream, std::span<const std::int64_t> labelled);
  // Any time before the gather is issued. Stop and Leave are told on; a step that is to fail is not
  // finite, whatever it computed.
  void ask(Ask what);

  tensor::Tensor loss_sum(std::int64_t micro_batch) const;  // fp64 (1)
  tensor::Tensor dense_square_norm() const;                 // fp64 (1)
  tensor::Tensor expert_square_norm() const;
  tensor::Tensor overflow() const;  // fp64 (1): budgets that were too small
  const RouterTotals& router() const { return router_; }

  void gather(tensor::Stream& stream, comm::Communicator& world) const;
  // After the gather (or, with one rank, after the nodes that write) is over; waits for the stream.
  StepTotals read(tensor::Stream& stream, const grid::Grid& grid, int loss_pp_rank) const;

 private:
  double mean_loss(const double* own) const;  // of one rank's row

  int world_;
  std::int64_t micro_batches_;
  Squares squares_;
  tensor::Tensor own_;         // fp64 (N); host-visible
  tensor::Tensor sent_, all_;  // what travels: fp64 (N), (world, N); with one rank own_
  RouterTotals router_;
};

}  // namespace weft::train
