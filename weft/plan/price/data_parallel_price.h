// Price of the end of a step: data-parallel exchanges and the optimizer.
#pragma once

#include <array>
#include <vector>

#include "weft/config/config.h"
#include "weft/derive/memory/optimizer_traffic.h"
#include "weft/derive/parameters.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::plan {

// Optimizer time of one step.
struct OptimizerSeconds {
  double device = 0;   // kernels of the device
  double waiting = 0;  // additional idle time of the device while the host updates
};

// Bytes per second of the host's AdamW for one rank: a GPU's share of the host bandwidth. If the
// rate of a core is known: the rank's share of the machine, limited by its own cores.
double host_update_rate(const config::Config& config, const Hardware& hardware);

class DataParallelPrice {
 public:
  DataParallelPrice(const config::Config& config,
                    const Hardware& hardware,
                    const std::vector<derive::RankParameters>& ranks);
  DataParallelPrice(const config::Config& config, const Hardware& hardware);

  // Exposed seconds on a rank with these times per micro-batch, forward and backward.
  double exposed(double micro_batches, double forward, double backward) const;
  OptimizerSeconds optimizer() const;

 private:
  // Parameters of the largest rank and its replicas. stride: rank distance of replicas; sharers:
  // replicas in one instance of the distributed optimizer.
  struct Replicated {
    double parameters = 0, replicas = 1, stride = 1, sharers = 1;
  };

  bool is_distributed() const;
  // Parameters whose state a rank keeps.
  double own(const Replicated& each) const;
  // Time of gradient reductions or weight gathers, over all replicas or within an instance.
  double exchange_seconds(double bytes_of_parameter) const;
  // Time of gradient sums between the instances.
  double between_seconds(double bytes_of_parameter) const;
  double host_seconds(double parameters) const;

  const config::Config& config_;
  const Hardware& hardware_;
  derive::OptimizerTraffic traffic_;
  std::array<Replicated, 2> replicated_;  // dense, experts
};

}  // namespace weft::plan
