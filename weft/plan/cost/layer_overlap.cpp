// Layer alone, and one layer's forward merged with another's backward.
#include <algorithm>
#include <cmath>

#include "weft/plan/cost/layer_time.h"
#include "weft/plan/cost/workload.h"
#include "weft/schedule/passes/interleave.h"

namespace weft::plan {
namespace {

using config::ModelConfig;

// Exponents that combine launch time and device time. A host that reads row counts in every layer
// cannot run ahead. Delays of both sides then add like the legs of a right triangle. In the
// interleaved order it launches another micro-batch's work meanwhile. Without such waits the longer
// side dominates.
constexpr double kWaitingHost = 2, kMergedHost = 3, kRunningHost = 6;

// The interleaved order cuts a layer into pieces with events between them. Split weight gradients
// make each product two calls. Both add launches.
constexpr double kMergedLaunches = 1.25, kSplitLaunches = 1.045;

double with_host(const ModelConfig& model,
                 const LayerTime& layer,
                 double waiting,
                 double device,
                 double host) {
  const bool waits = host_waits_for_counts(model) && !layer.launches_nodes;
  const double exponent = waits ? waiting : kRunningHost;
  if (host <= 0) return device;
  return std::pow(std::pow(device, exponent) + std::pow(host, exponent), 1 / exponent);
}

using schedule::DispatchBeside;

// Pairs of layers on two lanes, in the order of the interleaving pass
// (schedule/passes/interleave.h). Dispatches beside experts:
//   ep       b.combine.D | f.dispatch.F, b.dispatch.D         | f.combine.F
//   compute  f.before    | b.experts.D [W], f.experts.F       | b.before.D [W]
// Beside attention:
//   ep       b.dispatch.D | f.dispatch.F | b.combine.D     | f.combine.F
//   compute  f.before     | b.before.D   | f.experts.F [W] | b.experts.D [W]
class Lanes {
 public:
  Lanes(const LayerTime& layer, const config::Config& config, double slowdown)
      : layer_(layer),
        beside_(schedule::dispatch_beside(config.model)),
        splits_(config.comm_overlap.delay_wgrad_compute),
        slowdown_(slowdown) {}

  double communication() const {
    return 2 * (layer_.dispatch + layer_.combine) + dispatched_again();
  }

  // Time of one pair in the steady state.
  double period() {
    constexpr int kWarmUp = 4;
    for (int i = 0; i < kWarmUp; ++i) run_pair();
    const double before = forward_ready_;
    run_pair();
    return forward_ready_ - before;
  }

 private:
  double dispatched_again() const {
    return layer_.dispatch_is_recomputed ? layer_.dispatch + layer_.combine : 0;
  }

  void run_pair() {
    switch (beside_) {
      case DispatchBeside::Experts:
        return run_beside_experts();
      case DispatchBeside::Attention:
        return run_beside_attention();
    }
  }

  double way_back() const { return layer_.after.d + dispatched_again() + layer_.combine; }
  double later_weights() const { return (layer_.before.w + layer_.after.w) * slowdown_; }

  void run_beside_experts() {
    const Directions& experts = layer_.experts;
    ep_ = std::max(ep_, backward_ready_) + way_back();
    const double combine_d = ep_;
    compute_ = std::max(compute_, forward_ready_) + layer_.before.f * slowdown_;
    ep_ = std::max(ep_, compute_) + layer_.dispatch;
    const double dispatch_f = ep_;
    compute_ = std::max(compute_, combine_d) + experts.d * slowdown_;
    const double experts_d = compute_ + (splits_ ? 0 : experts.w * slowdown_);
    compute_ += experts.w * slowdown_;
    ep_ = std::max(ep_, experts_d) + layer_.dispatch;
    const double dispatch_d = ep_;
    compute_ = std::max(compute_, dispatch_f) + experts.f * slowdown_;
    ep_ = std::max(ep_, compute_) + layer_.combine + layer_.after.f;
    forward_ready_ = ep_;
    compute_ = std::max(compute_, dispatch_d) + layer_.before.d * slowdown_;
    backward_ready_ = compute_ + (splits_ ? 0 : later_weights());
    compute_ += later_weights();
  }

  void run_beside_attention() {
    const Directions& experts = layer_.experts;
    compute_ = std::max(compute_, backward_ready_) + experts.d * slowdown_;
    const double experts_d = compute_ + (splits_ ? 0 : experts.w * slowdown_);
    compute_ += experts.w * slowdown_;
    ep_ = std::max(ep_, experts_d) + layer_.dispatch;
    const double dispatch_d = ep_;
    compute_ = std::max(compute_, forward_ready_) + layer_.before.f * slowdown_;
    ep_ = std::max(ep_, compute_) + layer_.dispatch;
    const double dispatch_f = ep_;
    compute_ = std::max(compute_, dispatch_d) + layer_.before.d * slowdown_;
    if (!splits_) compute_ += later_weights();
    ep_ = std::max(ep_, compute_) + way_back();
    backward_ready_ = ep_;
    compute_ = std::max(compute_, dispatch_f) + experts.f * slowdown_;
    ep_ = std::max(ep_, compute_) + layer_.combine + layer_.after.f;
    forward_ready_ = ep_;
    if (splits_) compute_ += later_weights();
  }

  const LayerTime& layer_;
  const DispatchBeside beside_;
  const bool splits_;
  const double slowdown_;
  double compute_ = 0, ep_ = 0;                    // end of work on each lane
  double forward_ready_ = 0, backward_ready_ = 0;  // start time of the next layer
};

}  // namespace

double transfer_share(const ModelConfig& model, const Hardware& hardware) {
  const auto asked = model.moe_flex_dispatcher_num_sms;
  return (asked ? static_cast<double>(*asked) : hardware.dispatch_sms) / hardware.sms;
}

Stretch& Stretch::operator+=(const Stretch& other) {
  total += other.total;
  ep += other.ep;
  tp += other.tp;
  cp += other.cp;
  copy += other.copy;
  return *this;
}

Stretch Stretch::operator*(double factor) const {
  return {.total = total * factor,
          .ep = ep * factor,
          .tp = tp * factor,
          .cp = cp * factor,
          .copy = copy * factor};
}

Stretch Stretch::operator-(const Stretch& other) const {
  Stretch difference = *this;
  difference += other * -1;
  return difference;
}

PlainTime& PlainTime::operator+=(const PlainTime& other) {
  forward += other.forward;
  backward += other.backward;
  ep += other.ep;
  tp += other.tp;
  cp += other.cp;
  copy += other.copy;
  host += other.host;
  return *this;
}

PlainTime PlainTime::operator*(double factor) const {
  return {.forward = forward * factor,
          .backward = backward * factor,
          .ep = ep * factor,
          .tp = tp * factor,
          .cp = cp * factor,
          .copy = copy * factor,
          .host = host * factor};
}

PlainTime plain_time(const config::Config& config, const LayerTime& layer) {
  const Directions compute = layer.compute();
  const double wire = layer.dispatch + layer.combine;
  // Recomputed rows are dispatched during recomputation and do not return.
  constexpr double kBroughtAgain = 0.25;
  const double wire_b = wire * (layer.dispatch_is_recomputed ? 1 + kBroughtAgain : 1);
  return plain_time(config,
                    layer,
                    {.total = compute.f + wire + layer.tp.f + layer.cp.f,
                     .ep = wire,
                     .tp = layer.tp.f,
                     .cp = layer.cp.f},
                    {.total = compute.d + compute.w + wire_b + layer.tp.d + layer.cp.d,
                     .ep = wire_b,
                     .tp = layer.tp.d,
                     .cp = layer.cp.d});
}

PlainTime plain_time(const config::Config& config,
                     const LayerTime& layer,
                     const Stretch& forward,
                     const Stretch& backward) {
  PlainTime time{
      .forward = with_host(config.model, layer, kWaitingHost, forward.total, layer.host_f),
      .backward = with_host(config.model, layer, kWaitingHost, backward.total, layer.host_b),
      .ep = forward.ep + backward.ep,
      .tp = forward.tp + backward.tp,
      .cp = forward.cp + backward.cp,
      .copy = forward.copy + backward.copy};
  time.forward += layer.counts_wait;
  time.host = time.total() - forward.total - backward.total;
  return time;
}

PlainTime merged_time(const config::Config& config, const LayerTime& layer, const Stretch& merged) {
  const bool splits = config.comm_overlap.delay_wgrad_compute;
  const double cut = kMergedLaunches * (splits ? kSplitLaunches : 1);
  const double launches = layer.launches_nodes ? 1 : cut;  // nodes are cut already
  const double all = with_host(config.model,
                               layer,
                               kMergedHost,
                               merged.total,
                               launches * (layer.host_f + layer.host_b));
  const Directions compute = layer.compute();
  const double forward = compute.f / compute.total();
  return {.forward = all * forward,
          .backward = all * (1 - forward),
          .ep = merged.ep,
          .tp = merged.tp,
          .cp = merged.cp,
          .copy = merged.copy,
          .host = all - merged.total};
}

PlainTime merged_time(const config::Config& config,
                      const LayerTime& layer,
                      const Hardware& hardware) {
  if (layer.dispatch <= 0) return plain_time(config, layer);
  const double alone = layer.compute().total();
  // Un-permuting takes device time from the compute beside it.
  const double merges = layer.after.f + layer.after.d;
  const double shared = alone / (alone - merges);
  // Compute is slower beside a transfer; the pair determines for how long.
  const double share = transfer_share(config.model, hardware);
  Lanes undisturbed(layer, config, shared);
  const double open = std::max(0.0, undisturbed.period() - alone);
  const double hidden = std::max(0.0, undisturbed.communication() - open);
  const double slowdown = shared * (1 + share * std::min(1.0, hidden / alone));
  const double period = Lanes(layer, config, slowdown).period();
  const double tp = layer.tp.f + layer.tp.d, cp = layer.cp.f + layer.cp.d;
  return merged_time(
      config,
      layer,
      {.total = period + tp + cp, .ep = std::max(0.0, period - alone), .tp = tp, .cp = cp});
}

}  // namespace weft::plan
