// comm_overlap.overlap_moe_expert_parallel_comm = auto: the first steps of a run are taken in
// several orders in turn (plain, overlapped, overlapped with delayed weight gradients), and the
// rest in the one that was fastest. The bits are the same in all of them, so that no step is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/train/engine.h"

namespace weft::train {

class OrderChoice {
 public:
  // Of an engine whose config leaves the order to the run; for all others it does nothing. All
  // ranks make one.
  explicit OrderChoice(Engine& engine);

  // Of each order that may come, so that its first step lies well in memory; `config` is the
  // engine's.
  void rehearse(const rules::JudgedConfig& config);
  // Puts the order of the next step into the engine.
  void begin_step();
  // All ranks call it after a step, with its seconds. On the step that decides: what was measured
  // and chosen, in words; by rank 0's clock.
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
  std::size_t steps_ = 0;  // taken so far
  bool is_decided_ = true;
};

}  // namespace weft::train
