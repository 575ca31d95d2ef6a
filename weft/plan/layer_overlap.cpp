// A layer alone, and the forward of one merged with the backward of another.
#include <algorithm>
#include <cmath>

#include "weft/plan/layer_time.h"
#include "weft/plan/workload.h"

namespace weft::plan {
namespace {

using config::ModelConfig;

// How launches and device work add up to time. Where the host must learn row counts in every layer
// it cannot run ahead of the device, and what is slow on one side is not made up on the other: the
// two add like the sides of a right angle. Where it can run ahead, the longer of the two decides.
constexpr double kWaitingHost = 2, kRunningHost = 6;

// The merged order cuts a layer into pieces with events between them, and the split of weight
// gradients each product into two calls: more for the host to do.
constexpr double kMergedLaunches = 1.25, kSplitLaunches = 1.1;

// A multiprocessor less for compute is not a multiprocessor's worth of it: part of what kernels do
// waits for memory anyhow. But a transfer beside them also takes memory bandwidth.
constexpr double kContention = 1.0;

double with_host(const ModelConfig& model, double device, double host) {
  const double exponent = host_waits_for_counts(model) ? kWaitingHost : kRunningHost;
  if (host <= 0) return device;
  return std::pow(std::pow(device, exponent) + std::pow(host, exponent), 1 / exponent);
}

double dispatch_sms(const ModelConfig& model, const Hardware& hardware) {
  const auto asked = model.moe_flex_dispatcher_num_sms;
  return asked ? static_cast<double>(*asked) : hardware.dispatch_sms;
}

// One pair of layers on two lanes, as the interleaving pass orders them:
//   ep       b.combine.D | f.dispatch.F, b.dispatch.D         | f.combine.F
//   compute  f.before    | b.experts.D [W], f.experts.F       | b.before.D [W]
struct Pair {
  double seconds = 0;
  double communication = 0;
};

Pair run_pair(const LayerTime& layer, bool splits, double slowdown) {
  const Directions& x = layer.experts;
  const double wire_d = layer.dispatch, wire_c = layer.combine;
  const double again = layer.travels_again ? wire_d + wire_c : 0;
  const double f_before = layer.before.f * slowdown;
  const double b_merge = layer.after.d * slowdown;  // the backward of the combine's other side
  // Lane by lane: when each operation is over.
  const double combine_d = b_merge + again + wire_c;
  double compute = b_merge + f_before;
  const double dispatch_f = std::max(combine_d, compute) + wire_d;
  compute = std::max(compute, combine_d) + x.d * slowdown;
  const double experts_d = compute + (splits ? 0 : x.w * slowdown);
  compute += x.w * slowdown;
  const double dispatch_d = std::max(dispatch_f, experts_d) + wire_d;
  compute = std::max(compute, dispatch_f) + x.f * slowdown;
  const double combine_f = std::max(dispatch_d, compute) + wire_c;
  compute = std::max(compute, dispatch_d) + layer.before.d * slowdown + layer.before.w * slowdown;
  const double merge_f = std::max(compute, combine_f) + layer.after.f * slowdown;
  return {.seconds = merge_f + layer.after.w * slowdown,
          .communication = 2 * (wire_d + wire_c) + again};
}

}  // namespace

PlainTime plain_time(const config::Config& config, const LayerTime& layer) {
  const Directions compute = layer.compute();
  const double wire = layer.dispatch + layer.combine;
  const double wire_b = wire * (layer.travels_again ? 2 : 1);
  const double device_f = compute.f + wire + layer.tp.f + layer.cp.f;
  const double device_b = compute.d + compute.w + wire_b + layer.tp.d + layer.cp.d;
  PlainTime time{.forward = with_host(config.model, device_f, layer.host_f),
                 .backward = with_host(config.model, device_b, layer.host_b),
                 .ep = wire + wire_b,
                 .tp = layer.tp.f + layer.tp.d,
                 .cp = layer.cp.f + layer.cp.d};
  time.host = time.total() - device_f - device_b;
  return time;
}

PlainTime merged_time(const config::Config& config,
                      const LayerTime& layer,
                      const Hardware& hardware) {
  if (layer.dispatch <= 0) return plain_time(config, layer);
  const bool splits = config.comm_overlap.delay_wgrad_compute;
  const double alone = layer.compute().total();
  // Compute is slower while something travels beside it; how long that is follows from the pair.
  const double share = dispatch_sms(config.model, hardware) / hardware.sms * kContention;
  Pair pair = run_pair(layer, splits, 1);
  double exposed = pair.seconds - alone;
  const double hidden = std::max(0.0, pair.communication - exposed);
  const double slowdown = 1 + share * std::min(1.0, hidden / alone);
  pair = run_pair(layer, splits, slowdown);
  exposed = pair.seconds - alone;
  const double others = layer.tp.f + layer.tp.d + layer.cp.f + layer.cp.d;
  const double launches = kMergedLaunches * (splits ? kSplitLaunches : 1);
  const double device = pair.seconds + others;
  const double all = with_host(config.model, device, launches * (layer.host_f + layer.host_b));
  const double forward = layer.compute().f / alone;
  return {.forward = all * forward,
          .backward = all * (1 - forward),
          .ep = exposed,
          .tp = layer.tp.f + layer.tp.d,
          .cp = layer.cp.f + layer.cp.d,
          .host = all - device};
}

}  // namespace weft::plan
