// What each kind of layer of a run takes, launches included: each kind is priced once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "weft/config/config.h"
#include "weft/derive/layer_kind.h"
#include "weft/plan/hardware.h"
#include "weft/plan/layer_time.h"
#include "weft/plan/routing.h"
#include "weft/plan/simulated_layer.h"

namespace weft::plan {

// Formula: sums, and two lanes for what is merged; for a sieve of many layouts. Schedule: the real
// order on the clock (simulated_layer.h).
enum class Depth { Formula, Schedule };

// How much longer nodes of a layer take than their kernels and wires.
struct NodeStretch {
  double all = 1;       // every node
  double compute = 1;   // nodes of compute, besides
  double launches = 0;  // of such a node, the share in which the device waits for launches
};

struct LayerPrice {
  LayerTime time;
  PlainTime plain;
  PlainTime merged;  // of a forward with a backward, where the run merges them
  PlainTime round;   // of a round of merged layers, besides those
  // By launches, and where forwards are merged with backwards by the transfers beside them.
  NodeStretch forward, backward;
};

// Layers that were priced by formula before, for who prices very many runs that differ in their
// layout and in what a planner turns: a layer does not know how long the pipeline is. Safe to use
// from several threads; what is remembered does not depend on who comes first.
class FormulaLayers {
 public:
  const LayerPrice& of(const std::string& name, const std::function<LayerPrice()>& make);

 private:
  std::mutex mutex_;
  std::map<std::string, LayerPrice> known_;
};

class LayerPrices {
 public:
  LayerPrices(const config::Config& config,
              const Hardware& hardware,
              const Routing& routing,
              const LayerMemory& memory);  // by schedule
  LayerPrices(const config::Config& config,
              const Hardware& hardware,
              const Routing& routing,
              FormulaLayers* known);  // by formula

  // `place_in_stage`: which of a stage's layers it is, from 0.
  const LayerPrice& of(std::int64_t layer, int place_in_stage);
  // Of the ends of the model: only `time` and `plain`.
  LayerPrice embed() const;
  LayerPrice head() const;
  LayerPrice mtp() const;

 private:
  using Kind = std::tuple<derive::AttentionKind, bool, bool, Recomputed, double>;

  LayerPrice price(std::int64_t layer, Recomputed whole, double imbalance) const;
  LayerPrice by_formula(const std::string& name, const std::function<LayerPrice()>& make) const;
  SimulatedLayer simulated(std::int64_t layer, Recomputed whole, double imbalance) const;
  LayerPrice end_price(const LayerTime& time) const;

  const config::Config& config_;
  const Hardware& hardware_;
  const Routing& routing_;
  Depth depth_;
  LayerMemory memory_;
  FormulaLayers* known_ = nullptr;
  std::string name_;  // of the run among those that `known_` has layers of
  std::map<Kind, LayerPrice> kinds_;
};

}  // namespace weft::plan
