// The end of a step: what data-parallel ranks exchange, and the optimizer.
#pragma once

#include <array>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/optimizer_traffic.h"
#include "weft/derive/parameters.h"
#include "weft/plan/hardware.h"

namespace weft::plan {

// Seconds of one step's optimizer.
struct OptimizerSeconds {
  double device = 0;   // its own kernels
  double waiting = 0;  // on top, for what the host changes: that the device has nothing to do
};

// Bytes a second of the host's AdamW on a rank's share: of a GPU's share of the memory's bandwidth,
// or of what the cores of a rank reach of all that its machine has, where that is known.
double host_update_rate(const config::Config& config, const Hardware& hardware);

class DataParallelPrice {
 public:
  DataParallelPrice(const config::Config& config,
                    const Hardware& hardware,
                    const std::vector<derive::RankParameters>& ranks);
  DataParallelPrice(const config::Config& config, const Hardware& hardware);

  // Seconds that nothing hides, on a rank whose micro-batch takes so long forward and back.
  double exposed(double micro_batches, double forward, double backward) const;
  OptimizerSeconds optimizer() const;

 private:
  // Parameters of the rank with most, and the ranks that have the same ones; those of them that
  // are one instance of a distributed optimizer.
  struct Replicated {
    double parameters = 0, replicas = 1, stride = 1, sharers = 1;
  };

  bool is_distributed() const;
  // Those whose state a rank keeps.
  double own(const Replicated& each) const;
  // Reductions of gradients, or gathers of weights: among all that have them, or the ranks of an
  // instance.
  double exchange_seconds(double bytes_of_parameter) const;
  // Sums of an instance's gradients, between the instances.
  double between_seconds(double bytes_of_parameter) const;
  double host_seconds(double parameters) const;

  const config::Config& config_;
  const Hardware& hardware_;
  derive::OptimizerTraffic traffic_;
  std::array<Replicated, 2> replicated_;  // dense, experts
};

}  // namespace weft::plan
