// State of a training run as one list: weights, moments, master weights, step, data position, seed.
#pragma once

#include <vector>

#include "weft/checkpoint/state.h"
#include "weft/train/engine.h"

namespace weft::train {

// Position of a run, kept in tensors as part of the list. Random numbers are functions of (seed,
// purpose): the seed is the whole random state.
class Progress {
 public:
  Progress(tensor::Pool& pool, std::int64_t seed);

  std::int64_t step() const { return *step_.host<std::int64_t>(); }        // steps done
  std::int64_t samples() const { return *samples_.host<std::int64_t>(); }  // sequences consumed
  std::int64_t not_finite() const { return *not_finite_.host<std::int64_t>(); }
  std::int64_t repeated() const { return *repeated_.host<std::int64_t>(); }
  // First step of the current optimizer: its moments were zero and its learning rate began.
  std::int64_t optimizer_begin() const { return *optimizer_begin_.host<std::int64_t>(); }
  void begin_optimizer() { *optimizer_begin_.host<std::int64_t>() = step(); }
  void advance(std::int64_t samples);
  void skip_to(std::int64_t samples) { *samples_.host<std::int64_t>() = samples; }
  void count_not_finite() { ++*not_finite_.host<std::int64_t>(); }  // counts a skipped step
  // Counts a step that ran again without its budget.
  void count_repeated() { ++*repeated_.host<std::int64_t>(); }

  static constexpr const char* kSeedName = "rng/seed";
  // Checkpoints without it come from a run with its original optimizer.
  static constexpr const char* kOptimizerBeginName = "progress/optimizer_begin";
  static std::vector<std::string> names();  // names of the entries

  std::vector<checkpoint::StateEntry> entries() const;

 private:
  // int64 (1), host-visible
  tensor::Tensor step_, samples_, seed_, not_finite_, repeated_, optimizer_begin_;
};

// Values of one state for a range of a home's buffers: a rank's share.
struct NamedShare {
  std::string name;  // "optimizer.moment1"
  tensor::Tensor values;
};

// Entries of a share, one per parameter and state. An entry holds all of a parameter or a range of
// it.
std::vector<checkpoint::StateEntry> share_list(const model::Parameters& parameters,
                                               model::Home home,
                                               const tensor::Range& range,
                                               const std::vector<NamedShare>& shares);

// State of parts of an engine with all weights gathered.
std::vector<checkpoint::StateEntry> state_list(const model::Parameters& parameters,
                                               const std::vector<OptimizerShare>& optimizers,
                                               const Progress& progress);

// Every rank calls it between steps.
std::vector<checkpoint::StateEntry> state_list(Engine& engine, const Progress& progress);

}  // namespace weft::train
