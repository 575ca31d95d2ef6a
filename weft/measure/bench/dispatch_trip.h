// Forward trips of a rank's tokens through one dispatcher: to experts that return their input, and
// back.
#pragma once

#include <memory>

#include "weft/comm/launch.h"
#include "weft/derive/dispatch_traffic.h"
#include "weft/model/moe/dispatcher.h"

namespace weft::measure {

// Groups of every dispatcher, and `world` for barriers.
struct DispatchGroups {
  std::unique_ptr<comm::Communicator> world, ep, across, within;
};
// All ranks of the world, in machines of `ranks_per_node`.
DispatchGroups join_dispatch_groups(comm::Endpoint& endpoint, int ranks_per_node);

struct TripResult {
  double travel_seconds = 0;  // dispatch and combine
  double local_seconds = 0;   // permute, arrange, restore, merge
  std::int64_t peak_bytes = 0;
  derive::DispatchTraffic sent;  // by this rank
};

class DispatchTrip {
 public:
  // All arguments must outlive it.
  DispatchTrip(const config::ModelConfig& model,
               const DispatchGroups& groups,
               const derive::DispatchShape& shape,
               tensor::Stream& stream,
               tensor::Pool& pool);

  // All ranks call it together. CHECKs that each token returns once per chosen expert.
  TripResult run(const model::Routed& routed);

 private:
  derive::DispatchTraffic sent_so_far() const;
  void learn_counts(model::DispatchState& state, const model::Routed& routed);
  void check(const tensor::Tensor& y_TD, const tensor::Tensor& x_TD) const;

  const config::ModelConfig& config_;
  const DispatchGroups& groups_;
  const derive::DispatchShape shape_;
  tensor::Stream& stream_;
  tensor::Pool& pool_;
  std::unique_ptr<model::Dispatcher> dispatcher_;
};

}  // namespace weft::measure
