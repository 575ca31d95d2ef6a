// A rank's trips through one dispatcher: tokens to their experts, which hand back what they get,
// and home again. Forward only.
#pragma once

#include <memory>

#include "weft/comm/launch.h"
#include "weft/derive/dispatch_traffic.h"
#include "weft/model/moe/dispatcher.h"

namespace weft::measure {

// The groups of every dispatcher, and the one that keeps time.
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
  // `model` outlives it, and so do the others.
  DispatchTrip(const config::ModelConfig& model,
               const DispatchGroups& groups,
               const derive::DispatchShape& shape,
               tensor::Stream& stream,
               tensor::Pool& pool);

  // All ranks together. CHECKs that each token comes back as often as it chose an expert.
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
