// What the memory of many runs is made of, looked up once: what a layer keeps, from the bytes that
// its pieces declare, and which micro-batches of a pipeline rank are in flight together, from the
// order of its turns.
//
// A book is of runs that differ in their layout and in what the planner turns, and are else the
// same. Safe to use from several threads; what it says does not depend on who comes first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/parameters.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/layer_time.h"
#include "weft/plan/offloaded_layers.h"

namespace weft::plan {

// Bytes of one micro-batch.
struct KeptLayer {
  double kept = 0;   // between forward and backward
  double again = 0;  // on top of it at most, while its backward runs
  double away = 0;   // kept more where nothing of it is offloaded
  double host = 0;   // in the host's memory meanwhile

  KeptLayer operator*(double factor) const;
};

// What follows the last layer of a stage: a send, on a rank with the head in another stage or on
// one without it, or the head.
enum class StageEnd { Send, SendBesideHead, Head };

// What a layer is, for its memory.
struct LayerAsked {
  std::int64_t layer = 0;
  Recomputed whole = Recomputed::No;
  double imbalance = 1;  // rows over the mean
  std::vector<schedule::PieceName> offloaded = {};
};

// Micro-batches whose forward is there and whose backward is not over, by chunk of the rank.
using Flight = std::vector<int>;
// By chunk: every flight that some turn of it has, its own micro-batch in it, without those of
// which another has as much of every chunk.
using ChunkFlights = std::vector<std::vector<Flight>>;

// The most bytes besides weights, gradients and optimizer state that each pipeline rank has at one
// time of a training step, counted; none where that cannot be.
using StepCounter = std::function<std::vector<double>(const config::Config&)>;

class MemoryBook {
 public:
  MemoryBook() = default;
  // With what lives inside the nodes of a layer counted (counted_layers.h), not told by formula.
  explicit MemoryBook(StepCounter counter) : counter_(std::move(counter)) {}

  // Of a layer of the config, by a small run of such layers.
  KeptLayer layer(const config::Config& config, const LayerAsked& asked);

  bool counts() const { return counter_ != nullptr; }

  // By pipeline rank.
  const std::vector<ChunkFlights>& flights(const config::Config& config);

  // On top of what is kept, at most, while a stage that ends as `end` says works on a layer like
  // this one; none where nothing counts it.
  std::optional<double> counted(const config::Config& config,
                                const LayerAsked& asked,
                                StageEnd end);

  // derive::stages_of, derive::rank_parameters, and what offloaded_layers.h says of the config.
  const std::vector<derive::Stage>& stages(const config::Config& config);
  const std::vector<derive::RankParameters>& parameters(const config::Config& config);
  // Bytes of a gradient of every shape that the layers' weights have on a rank, once each.
  double dummy_gradients(const config::Config& config);
  const std::vector<OffloadablePart>& offloadable(const config::Config& config,
                                                  std::int64_t layer,
                                                  Recomputed whole);
  // By stage and layer of it; none where nothing is offloaded.
  const OffloadedStages& offloaded(const config::Config& config);

 private:
  // What `known` has under the name, or `make` makes. It stays as long as the book.
  template <typename Value, typename Make>
  const Value& look_up(std::map<std::string, Value>& known,
                       const std::string& name,
                       const Make& make);

  std::mutex mutex_;
  std::map<std::string, KeptLayer> layers_;
  StepCounter counter_;
  std::map<std::string, std::vector<ChunkFlights>> flights_;
  std::map<std::string, std::optional<double>> counted_;
  std::map<std::string, std::vector<derive::Stage>> stages_;
  std::map<std::string, std::vector<derive::RankParameters>> parameters_;
  std::map<std::string, double> dummies_;
  std::map<std::string, std::vector<OffloadablePart>> offloadable_;
  std::map<std::string, OffloadedStages> offloaded_;
};

}  // namespace weft::plan
