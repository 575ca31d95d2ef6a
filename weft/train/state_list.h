// The state of a training run as one list: weights, moments, master weights, step, data position,
// seed.
#pragma once

#include <vector>

#include "weft/checkpoint/state.h"
#include "weft/train/engine.h"

namespace weft::train {

// Where a run stands, kept in tensors so that it is part of the list. Random numbers are functions
// of (seed, what they are drawn for): the seed is all the random state there is.
class Progress {
 public:
  Progress(tensor::Pool& pool, std::int64_t seed);

  std::int64_t step() const { return *step_.host<std::int64_t>(); }        // steps done
  std::int64_t samples() const { return *samples_.host<std::int64_t>(); }  // sequences consumed
  std::int64_t not_finite() const { return *not_finite_.host<std::int64_t>(); }
  std::int64_t repeated() const { return *repeated_.host<std::int64_t>(); }
  // The step before which the optimizer was new: moments were zero, the learning rate at its begin.
  std::int64_t optimizer_begin() const { return *optimizer_begin_.host<std::int64_t>(); }
  void begin_optimizer() { *optimizer_begin_.host<std::int64_t>() = step(); }
  void advance(std::int64_t samples);
  void skip_to(std::int64_t samples) { *samples_.host<std::int64_t>() = samples; }
  void count_not_finite() { ++*not_finite_.host<std::int64_t>(); }  // a step that changed nothing
  void count_repeated() { ++*repeated_.host<std::int64_t>(); }  // one that ran without its budget

  static constexpr const char* kSeedName = "rng/seed";
  // Checkpoints that lack it are of a run whose optimizer began with it.
  static constexpr const char* kOptimizerBeginName = "progress/optimizer_begin";
  static std::vector<std::string> names();  // of its entries

  std::vector<checkpoint::StateEntry> entries() const;

 private:
  // int64 (1), host-visible
  tensor::Tensor step_, samples_, seed_, not_finite_, repeated_, optimizer_begin_;
};

// Values of every element of a range of a home's buffers: a rank's share of one of its states.
struct NamedShare {
  std::string name;  // "optimizer.moment1"
  tensor::Tensor values;
};

// A share as entries, one for each parameter and state, whether it holds all of a parameter or a
// range that begins and ends inside one.
std::vector<checkpoint::StateEntry> share_list(const model::Parameters& parameters,
                                               model::Home home,
                                               const tensor::Range& range,
                                               const std::vector<NamedShare>& shares);

// Of parts of an engine, whose weights are all there.
std::vector<checkpoint::StateEntry> state_list(const model::Parameters& parameters,
                                               const std::vector<OptimizerShare>& optimizers,
                                               const Progress& progress);

// Every rank calls it, while no step is under way.
std::vector<checkpoint::StateEntry> state_list(Engine& engine, const Progress& progress);

}  // namespace weft::train
