// comm_overlap.overlap_moe_expert_parallel_comm = auto. The first steps of a run rotate through
// several orders: plain, overlapped, and overlapped with delayed weight gradients. The remaining
// steps use the fastest one. All orders give the same bits, so no step is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/train/engine.h"

namespace weft::train {

// Memory use of a training step before its first run, in the order of this plan, for the pool of a
// rank of such a run. A dry device runs the step twice: with even and with uneven routing.
// Differences between the two vary with the data.
tensor::Rehearsal rehearse(const rules::JudgedConfig& config,
                           int rank,
                           const schedule::RankPlan& plan);

class OrderChoice {
 public:
  // Inactive unless the engine's config leaves the order to the run. All ranks make one.
  explicit OrderChoice(Engine& engine);

  // Rehearses each candidate order, so that its first step has a good memory layout. `config`: the
  // engine's.
  void rehearse(const rules::JudgedConfig& config);
  // Installs the order of the next step in the engine.
  void begin_step();
  // All ranks call it after a step, with its seconds. Returns the measurements and the choice as
  // text on the deciding step, by rank 0's clock; otherwise nullopt.
  std::optional<std::string> end_step(double seconds);

 private:
  struct Order {
    std::string name;
    std::unique_ptr<schedule::RankPlan> plan;
    std::unique_ptr<exec::Executor> executor;
    std::vector<double> seconds;  // without the first step, which warms up
  };

  void add(const char* name, const config::Config& config);
  std::vector<double> agreed_medians();

  Engine& engine_;
  std::vector<Order> orders_;
  std::size_t steps_ = 0;  // steps taken so far
  bool is_decided_ = true;
};

}  // namespace weft::train
