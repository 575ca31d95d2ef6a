// Times of each kind of layer in a run, launches included; each kind is priced once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/layer_kind.h"
#include "weft/plan/cost/layer_time.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/hardware/routing.h"
#include "weft/plan/price/simulated_layer.h"

namespace weft::plan {

// Formula: sums, and two lanes for merged nodes; a sieve for many layouts. Schedule: the real order
// on the simulated clock (simulated_layer.h).
enum class Depth { Formula, Schedule };

// Stretch of a layer's nodes over their kernels and wires.
struct NodeStretch {
  double all = 1;       // every node
  double compute = 1;   // compute nodes, additionally
  double launches = 0;  // share of a compute node in which the device waits for launches
};

struct LayerPrice {
  LayerTime time;
  PlainTime plain;
  PlainTime merged;  // a forward merged with a backward, if the run merges them
  PlainTime round;   // additional time per round of merged layers
  // Stretch by launches, and by concurrent transfers if the run merges forwards with backwards.
  NodeStretch forward, backward;
};

// Key of a run: every planner setting that affects a layer's price.
struct FormulaRun {
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1, sequences = 1;
  bool shares_sequence = false;
  config::Dispatcher dispatcher = {};
  std::optional<config::FlexBackend> backend = {};
  bool merges = false, delays = false, overlaps_tp = false;
  DType number = DType::BF16;
  config::CudaGraphImpl graphs = {};
  std::optional<config::RecomputeGranularity> granularity = {};
  std::vector<config::CudaGraphScope> captured = {};
  std::optional<std::vector<config::RecomputeModule>> recomputed = {};

  auto operator<=>(const FormulaRun&) const = default;
};

// Key of a layer kind of a run, or of an end of its model.
struct FormulaKind {
  enum class Place { Layer, Embed, Head, Mtp };
  Place place = Place::Layer;
  derive::AttentionKind attention = {};
  bool is_windowed = false, is_moe = false;
  Recomputed whole = Recomputed::No;
  double imbalance = 1;

  auto operator<=>(const FormulaKind&) const = default;
};

// Cache of layers priced by formula, for many runs that differ in layout and planner settings: a
// layer is independent of the pipeline length. Thread-safe; the content does not depend on the
// order of callers.
class FormulaLayers {
 public:
  using OfRun = std::map<FormulaKind, LayerPrice>;

  // Cached layers of a run. The reference stays valid.
  OfRun& of(const FormulaRun& run);
  const LayerPrice& of(OfRun& run,
                       const FormulaKind& kind,
                       const std::function<LayerPrice()>& make);

 private:
  std::mutex mutex_;
  std::map<FormulaRun, OfRun> known_;
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

  // `place_in_stage`: index of the layer in its stage, from 0.
  const LayerPrice& of(std::int64_t layer, int place_in_stage);
  // Ends of the model: only `time` and `plain` are set.
  LayerPrice embed() const;
  LayerPrice head() const;
  LayerPrice mtp() const;

 private:
  LayerPrice price(std::int64_t layer, Recomputed whole, double imbalance) const;
  LayerPrice by_formula(const FormulaKind& kind, const std::function<LayerPrice()>& make) const;
  SimulatedLayer simulated(std::int64_t layer, Recomputed whole, double imbalance) const;
  LayerPrice end_price(const LayerTime& time) const;

  const config::Config& config_;
  const Hardware& hardware_;
  const Routing& routing_;
  Depth depth_;
  LayerMemory memory_;
  FormulaLayers* known_ = nullptr;
  FormulaLayers::OfRun* known_of_run_ = nullptr;  // layers of the run in `known_`
  std::map<FormulaKind, LayerPrice> kinds_;
};

}  // namespace weft::plan
