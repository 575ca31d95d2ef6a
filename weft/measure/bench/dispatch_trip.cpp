#include "weft/measure/bench/dispatch_trip.h"

#include <numeric>

#include "weft/base/check.h"
#include "weft/model/moe/exchange.h"
#include "weft/tensor/transfer.h"
#include "weft/train/groups.h"

namespace weft::measure {

using namespace train;

using derive::DispatchTraffic;
using derive::WireTraffic;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

namespace {

WireTraffic minus(const WireTraffic& a, const WireTraffic& b) {
  return {.rows = a.rows - b.rows,
          .payload = a.payload - b.payload,
          .probabilities = a.probabilities - b.probabilities,
          .metadata = a.metadata - b.metadata};
}

DispatchTraffic minus(const DispatchTraffic& a, const DispatchTraffic& b) {
  return {.inside = minus(a.inside, b.inside), .between = minus(a.between, b.between)};
}

}  // namespace

DispatchGroups join_dispatch_groups(comm::Endpoint& endpoint, int ranks_per_node) {
  std::vector<int> all(static_cast<std::size_t>(endpoint.world()));
  std::iota(all.begin(), all.end(), 0);
  const MachineMembers machines = machine_members(all, endpoint.rank(), ranks_per_node);
  DispatchGroups groups;
  groups.world = endpoint.group("world", all);
  groups.ep = endpoint.group("ep", all);
  groups.across = endpoint.group("ep_across", machines.across);
  groups.within = endpoint.group("ep_within", machines.within);
  return groups;
}

DispatchTrip::DispatchTrip(const config::ModelConfig& model,
                           const DispatchGroups& groups,
                           const derive::DispatchShape& shape,
                           tensor::Stream& stream,
                           tensor::Pool& pool)
    : config_(model), groups_(groups), shape_(shape), stream_(stream), pool_(pool) {
  model::EpGroups ep{.ep = *groups.ep};
  if (derive::passes_on(model, shape)) {
    ep.across = groups.across.get();
    ep.within = groups.within.get();
  }
  dispatcher_ = model::make_dispatcher(model, ep, config::RowBudget::AsConfigured);
}

// Bytes since the start; the caller counts rows.
DispatchTraffic DispatchTrip::sent_so_far() const {
  DispatchTraffic total;
  for (const comm::Communicator* group :
       {groups_.ep.get(), groups_.across.get(), groups_.within.get()}) {
    const std::vector<comm::Sent> sent = group->sent();
    const std::int64_t own = groups_.ep->rank() / shape_.ranks_per_node;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const bool inside = group->members()[i] / shape_.ranks_per_node == own;
      WireTraffic& to = inside ? total.inside : total.between;
      to.payload += static_cast<double>(sent[i].payload);
      to.probabilities += static_cast<double>(sent[i].probabilities);
      to.metadata += static_cast<double>(sent[i].metadata);
    }
  }
  return total;
}

void DispatchTrip::learn_counts(model::DispatchState& state, const model::Routed& routed) {
  const model::Context context{.stream = stream_,
                               .pool = pool_,
                               .config = config_,
                               .rotary_SD = {}};
  const std::int64_t numbers = dispatcher_->counts();
  Tensor counts_N(pool_, DType::I64, {numbers}, Tag::Activations);
  dispatcher_->lay_out(context, state, routed, counts_N);
  kernels::seal_counts(stream_, counts_N, groups_.ep->rank());
  const Tensor shown_GN =
      model::show_to_host(context, model::gather_counts(context, *groups_.ep, std::move(counts_N)));
  stream_.synchronize();
  model::open_counts(shown_GN);
  dispatcher_->plan_on_host(state, shown_GN);
}

TripResult DispatchTrip::run(const model::Routed& routed) {
  const model::Context context{.stream = stream_,
                               .pool = pool_,
                               .config = config_,
                               .rotary_SD = {}};
  const Tensor y_TD(pool_, context.dtype(), routed.x_TD.shape(), Tag::Workspace);
  const Tensor h_TD(pool_, context.dtype(), routed.x_TD.shape(), Tag::Workspace);
  kernels::zero(stream_, h_TD);
  TripResult result;
  // Starts a stage on all ranks together.
  const auto timed = [&](double& seconds, const auto& stage) {
    groups_.world->barrier(stream_);
    stream_.synchronize();
    const std::int64_t begin = tensor::now_ns();
    stage();
    stream_.synchronize();
    seconds += static_cast<double>(tensor::now_ns() - begin) * 1e-9;
  };
  pool_.reset_peaks();
  const DispatchTraffic before = sent_so_far();
  model::DispatchState state;
  learn_counts(state, routed);
  timed(result.local_seconds, [&] { dispatcher_->permute_forward(context, state, routed); });
  timed(result.travel_seconds, [&] { dispatcher_->dispatch_forward(context, state); });
  const DispatchTraffic dispatched = minus(sent_so_far(), before);
  timed(result.local_seconds, [&] {
    const model::ExpertRows rows = dispatcher_->arrange_forward(context, state);
    dispatcher_->restore_forward(context, state, rows.x_XD);
  });
  timed(result.travel_seconds, [&] { dispatcher_->combine_forward(context, state); });
  timed(result.local_seconds, [&] { dispatcher_->merge_forward(context, state, y_TD, h_TD); });
  result.sent = minus(sent_so_far(), before);
  const auto row_bytes =
      static_cast<double>(routed.x_TD.bytes()) / static_cast<double>(shape_.tokens);
  result.sent.inside.rows = dispatched.inside.payload / row_bytes;
  result.sent.between.rows = dispatched.between.payload / row_bytes;
  result.peak_bytes = static_cast<std::int64_t>(pool_.use(Tag::Activations).peak +
                                                pool_.use(Tag::Communication).peak);
  check(y_TD, routed.x_TD);
  return result;
}

void DispatchTrip::check(const Tensor& y_TD, const Tensor& x_TD) const {
  const Tensor y(pool_, DType::F32, y_TD.shape(), Tag::Workspace);
  const Tensor x(pool_, DType::F32, x_TD.shape(), Tag::Workspace);
  kernels::copy(stream_, y, y_TD);
  kernels::copy(stream_, x, x_TD);
  const std::vector<float> sent = tensor::read<float>(stream_, x);
  const std::vector<float> came = tensor::read<float>(stream_, y);
  const auto k = static_cast<float>(config_.moe_router_topk);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    CHECK(came[i] == k * sent[i],
          "element {} came back as {}, should be {} times {}",
          i,
          came[i],
          k,
          sent[i]);
  }
}

}  // namespace weft::measure
