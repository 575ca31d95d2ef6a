// What the memory of many runs is made of, looked up once: what a layer keeps, from the bytes that
// its pieces declare, and which micro-batches of a pipeline rank are in flight together, from the
// order of its turns.
//
// A book is of runs that differ in their layout and in what the planner turns, and are else the
// same. Safe to use from several threads; what it says does not depend on who comes first.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
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

// What a layer is, for its memory.
struct LayerAsked {
  std::int64_t layer = 0;
  Recomputed whole = Recomputed::No;
  double imbalance = 1;  // rows over the mean
  std::vector<schedule::PieceName> offloaded = {};
};

// Micro-batches whose forward is there and whose backward is not over, by chunk of the rank.
using Flight = std::vector<int>;

class MemoryBook {
 public:
  // Of a layer of the config, by a small run of such layers.
  KeptLayer layer(const config::Config& config, const LayerAsked& asked);

  // By pipeline rank: every one that some moment of the step has, without those of which another
  // has as much of every chunk.
  const std::vector<std::vector<Flight>>& flights(const config::Config& config);

  // derive::stages_of, derive::rank_parameters, and what offloaded_layers.h says of the config.
  const std::vector<derive::Stage>& stages(const config::Config& config);
  const std::vector<derive::RankParameters>& parameters(const config::Config& config);
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
  std::map<std::string, std::vector<std::vector<Flight>>> flights_;
  std::map<std::string, std::vector<derive::Stage>> stages_;
  std::map<std::string, std::vector<derive::RankParameters>> parameters_;
  std::map<std::string, std::vector<OffloadablePart>> offloadable_;
  std::map<std::string, OffloadedStages> offloaded_;
};

}  // namespace weft::plan
