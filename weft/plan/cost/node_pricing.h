// Node times of a pipeline rank's graph on a kind of GPU. Kernels by piece and part
// (kernel_work.h), dispatch and combine by rows and links (plan/hardware/wire_time.h), tensor- and
// context-parallel exchanges by layer (layer_time.h).
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "weft/config/config.h"
#include "weft/exec/sim/step.h"
#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/plan/hardware/routing.h"
#include "weft/schedule/anatomy.h"

namespace weft::plan {

class NodePricing {
 public:
  // Prices every layer of the graph as itself.
  NodePricing(const config::Config& config, const Hardware& hardware, const Routing& routing = {});
  // Prices every layer of the graph as `layer` of the config; the ends of the model cost nothing.
  NodePricing(const config::Config& config,
              const Hardware& hardware,
              const Routing& routing,
              std::int64_t layer);

  // Call for every entry of the graph first: determines split pieces and the number of nodes per
  // exchange.
  void note(const schedule::Entry& entry);

  // nullopt: neither kernels nor wires.
  std::optional<exec::sim::Cost> cost(const schedule::Entry& entry,
                                      const schedule::Anatomy& anatomy);

 private:
  // Seconds of a piece in one direction: in total, and by part.
  struct PieceCost {
    double all = 0, products = 0;
    std::map<schedule::Part, double> parts = {};
  };
  using PieceCosts = std::map<std::pair<schedule::Piece, schedule::Direction>, PieceCost>;
  struct LayerCosts {
    PieceCosts pieces;
    double wire = 0;            // one dispatch or combine
    double tp = 0;              // one exchange of a layer's tokens
    double tp_f = 0, tp_d = 0;  // all exchanges of an end of the model
    double cp_f = 0, cp_d = 0;  // all of the layer
  };
  using LaneUse = std::tuple<int, schedule::Direction, schedule::Lane>;  // layer first

  std::int64_t layer_meant(int layer) const;
  const LayerCosts& costs_at(const schedule::Node& node);
  LayerCosts costs_of_layer(std::int64_t layer) const;
  PieceCosts costs_of_kernels(const std::vector<Kernel>& kernels) const;
  double product_exchange_seconds(const schedule::Node& node, const schedule::Anatomy& anatomy);
  double exchange_seconds(const schedule::Entry& entry);
  double seconds_of_part(const schedule::Node& node, const PieceCost& cost) const;

  const config::Config& config_;
  const Hardware& hardware_;
  const Routing& routing_;
  std::optional<std::int64_t> stands_for_;
  std::map<std::pair<schedule::Piece, schedule::Direction>, std::map<schedule::Part, bool>> seen_;
  std::map<LaneUse, double> exchanges_;  // nodes of one micro-batch
  std::map<std::int64_t, LayerCosts> layers_;
};

}  // namespace weft::plan
