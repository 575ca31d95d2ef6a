// Simulated time of one layer: forward, backward and merged, node by node in the real order of a
// small run of such layers.
//
// The order of a step repeats over layers and micro-batches. Runs of one and two layers therefore
// give the time of one more layer. With merged forwards and backwards, runs of two and three layers
// with three and four micro-batches do. A whole step is composed of these times
// (simulated_price.cpp).
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/cost/layer_time.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/hardware/routing.h"

namespace weft::plan {

struct SimulatedLayer {
  Stretch forward, backward;      // alone; the backward includes weight gradients
  Stretch merged;                 // a forward with a backward, if the config merges them
  Stretch round;                  // additional time per round of merged layers
  double merged_undisturbed = 0;  // `merged` without the transfers' load on the device
};

// Simulates a layer like `layer` of the config. Merged nodes are slowed by the transfers beside
// them (docs/plan.md).
SimulatedLayer simulate_layer(const config::Config& config,
                              const Hardware& hardware,
                              const Routing& routing,
                              std::int64_t layer,
                              Recomputed whole);

// Cache of simulated layers for runs that share them: a layer is independent of the pipeline
// length. Thread-safe; the content does not depend on the order of callers.
class SimulatedLayers {
 public:
  // Cached under a name of the layer and of all that its run decides about it.
  const SimulatedLayer& of(const std::string& name, const std::function<SimulatedLayer()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, SimulatedLayer> known_;
};

// Cache of layers and the run's name in it. nullptr: every run simulates its own.
struct LayerMemory {
  SimulatedLayers* layers = nullptr;
  std::string run = {};
};

}  // namespace weft::plan
