// One layer on the clock: its forward, its backward and the two merged, from the real order of a
// small run of such layers, node by node.
//
// The order of a step repeats from layer to layer and from micro-batch to micro-batch. So runs of
// one and two layers, and where forwards are merged with backwards runs of two and three layers
// with three and four micro-batches, say what one more layer takes; a whole step is made of these
// (simulated_price.cpp).
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/hardware.h"
#include "weft/plan/layer_time.h"
#include "weft/plan/routing.h"

namespace weft::plan {

struct SimulatedLayer {
  Stretch forward, backward;      // alone; the backward with its weight gradients
  Stretch merged;                 // a forward with a backward, where the config merges them
  Stretch round;                  // of a round of merged layers, besides those
  double merged_undisturbed = 0;  // `merged`, where transfers take nothing of the device
};

// A layer of the config as `layer` is. What is merged is slower by what the transfers beside it
// take of the device (docs/plan.md).
SimulatedLayer simulate_layer(const config::Config& config,
                              const Hardware& hardware,
                              const Routing& routing,
                              std::int64_t layer,
                              Recomputed whole);

// Layers that were simulated before, for who prices many runs that share them: a layer does not
// know how long the pipeline is. Safe to use from several threads; what is remembered does not
// depend on who comes first.
class SimulatedLayers {
 public:
  // By a name of the layer and of all that its run says of it.
  const SimulatedLayer& of(const std::string& name, const std::function<SimulatedLayer()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, SimulatedLayer> known_;
};

// Where to look for layers of a run, under its name. Nowhere: every run simulates its own.
struct LayerMemory {
  SimulatedLayers* layers = nullptr;
  std::string run = {};
};

}  // namespace weft::plan
