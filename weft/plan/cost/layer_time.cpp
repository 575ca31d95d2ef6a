#include "weft/plan/cost/layer_time.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "weft/base/casts.h"
#include "weft/plan/hardware/wire_time.h"
#include "weft/rules/captured.h"

namespace weft::plan {
namespace {

using base::number;
using config::CudaGraphScope;
using config::ModelConfig;
using config::RecomputeModule;
using schedule::Direction;
using schedule::Part;
using schedule::Piece;

// Exposed share of a tensor-parallel exchange in steps under the products: the first step and
// uncovered steps.
constexpr double kSteppedExposure = 0.25;

bool captured(const ModelConfig& model, Piece piece) {
  if (model.cuda_graph_impl == config::CudaGraphImpl::None) return false;
  if (model.cuda_graph_impl == config::CudaGraphImpl::FullIteration) return true;
  if (rules::names_scope(model, CudaGraphScope::FullIteration)) return true;
  const auto has = [&](CudaGraphScope scope) { return rules::captures(model, scope); };
  if (piece == Piece::Attention) return has(CudaGraphScope::Attn);
  if (piece == Piece::Mlp) return has(CudaGraphScope::Mlp);
  if (has(CudaGraphScope::Moe)) return true;
  if (piece == Piece::Route) return has(CudaGraphScope::MoeRouter);
  return piece == Piece::Counts && has(CudaGraphScope::MoePreprocess);
}

bool recomputes_module(const ModelConfig& model, RecomputeModule module) {
  if (model.recompute_granularity != config::RecomputeGranularity::Selective) return false;
  if (!model.recompute_modules) return module == RecomputeModule::CoreAttn;
  return std::ranges::find(*model.recompute_modules, module) != model.recompute_modules->end();
}

bool runs_again(const ModelConfig& model, const Kernel& kernel) {
  const auto has = [&](RecomputeModule module) { return recomputes_module(model, module); };
  const Piece piece = kernel.piece;
  const bool routed = piece == Piece::Route || piece == Piece::Permute || piece == Piece::Counts ||
                      piece == Piece::Experts || piece == Piece::Merge ||
                      piece == Piece::Dispatch || piece == Piece::Combine;
  if (routed && has(RecomputeModule::Moe)) return true;
  if (piece == Piece::Mlp && has(RecomputeModule::Mlp)) return true;
  if (piece == Piece::Shared &&
      (has(RecomputeModule::SharedExperts) || has(RecomputeModule::Moe))) {
    return true;
  }
  const Part part = kernel.part;
  if (part == Part::Core) return has(RecomputeModule::CoreAttn);
  if (part == Part::Expand || part == Part::Heads) return has(RecomputeModule::MlaUpProj);
  if (part == Part::Norm) return has(RecomputeModule::Layernorm);
  return part == Part::Act && piece == Piece::Experts && has(RecomputeModule::MoeAct);
}

// Stretch of a layer that contains the piece.
Directions& stretch_of(LayerTime& layer, Piece piece) {
  if (piece == Piece::Experts || piece == Piece::Shared) return layer.experts;
  return piece == Piece::Merge || piece == Piece::Combine ? layer.after : layer.before;
}

void add_time(Directions& to, Direction direction, double seconds) {
  if (direction == Direction::W) {
    to.w += seconds;
  } else {
    (direction == Direction::D ? to.d : to.f) += seconds;
  }
}

void add_kernels(const ModelConfig& model,
                 const std::vector<Kernel>& kernels,
                 const Hardware& hardware,
                 Recomputed whole,
                 LayerTime& layer) {
  layer.launches_nodes = hardware.work.launches_nodes;
  std::set<std::pair<Piece, Direction>> nodes;  // launched nodes
  for (const Kernel& kernel : kernels) {
    const double seconds = device_seconds(kernel, hardware);
    const bool is_forward = kernel.direction == Direction::F;
    const bool again = is_forward && (whole == Recomputed::Yes || runs_again(model, kernel));
    Directions& stretch = stretch_of(layer, kernel.piece);
    add_time(stretch, kernel.direction, seconds);
    if (again) stretch.d += seconds;
    const double times = again ? 2 : 1;
    switch (kernel.kind) {
      case KernelKind::Product:
        layer.products += times * seconds;
        break;
      case KernelKind::Attention:
        layer.attention += times * seconds;
        break;
      case KernelKind::Memory:
        layer.memory += times * seconds;
        break;
    }
    if (captured(model, kernel.piece)) continue;
    const double launches = hardware.work.launches_nodes
                                ? number(nodes.emplace(kernel.piece, kernel.direction).second)
                                : kernel.launches;
    const double launch = launches * hardware.launch_us * kMicroseconds;
    (is_forward ? layer.host_f : layer.host_b) += launch;
    if (again) layer.host_b += launch;
  }
}

// Exposed, unless in steps under the products.
void add_tensor_exchange(const config::Config& config,
                         const Workload& work,
                         const Hardware& hardware,
                         const TensorExchanges& exchanges,
                         LayerTime& layer) {
  if (work.tp <= 1) return;
  const double one = tensor_exchange_seconds(config, work, hardware);
  const double exposed = config.comm_overlap.tp_comm_overlap ? kSteppedExposure : 1;
  layer.tp.f += exchanges.forward * one * exposed;
  layer.tp.d += exchanges.backward * one * exposed;
}

// Adds the ring of keys and values, which travel under the previous attention.
void add_context_exchange(const config::Config& config,
                          const Workload& work,
                          const Hardware& hardware,
                          LayerTime& layer) {
  if (work.cp <= 1) return;
  const double seconds = context_exchange_seconds(config, work, hardware);
  const double core = layer.attention / 3.5;
  const double hidden = config.comm_overlap.cp_comm_overlap ? core * (work.cp - 1) / work.cp : 0;
  layer.cp.f += std::max(seconds / work.cp, seconds - hidden);
  layer.cp.d += std::max(2 * seconds / work.cp, 2 * (seconds - 1.25 * hidden));
}

LayerTime dense_like(const ModelConfig& model,
                     const std::vector<Kernel>& kernels,
                     const Hardware& hardware) {
  LayerTime time;
  add_kernels(model, kernels, hardware, Recomputed::No, time);
  return time;
}

void add_directions(Directions& to, const Directions& other) {
  to.f += other.f;
  to.d += other.d;
  to.w += other.w;
}

// Tokens are gathered before a column-split product and scattered after a row-split one: the
// exchanges of one such pair, forward and backward.
constexpr TensorExchanges kExchangePair{.forward = 2, .backward = 3};

}  // namespace

double tensor_exchange_seconds(const config::Config& config,
                               const Workload& work,
                               const Hardware& hardware) {
  const double bytes = work.tokens * number(config.model.hidden_size) * work.element;
  return gather_seconds(bytes, group_of(work.tp, 1, hardware), hardware);
}

TensorExchanges tensor_exchanges(const ModelConfig& model, std::int64_t layer) {
  // Attention, and a dense feed-forward.
  const double pairs = model.is_moe_layer(layer) ? 1 : 2;
  return {.forward = pairs * kExchangePair.forward, .backward = pairs * kExchangePair.backward};
}

double context_exchange_seconds(const config::Config& config,
                                const Workload& work,
                                const Hardware& hardware) {
  const ModelConfig& model = config.model;
  const double width =
      model.multi_latent_attention
          ? number(model.num_attention_heads * (model.latent_head_dim() + model.v_head_dim))
          : 2 * number(model.key_width());
  const double bytes = work.tokens * width / work.tp * work.element * (work.cp - 1);
  const RankGroup group = group_of(work.cp, work.tp, hardware);
  const bool is_far = group.domains() > 1;
  const double rate = is_far ? hardware.nic_gbps * 1e9 * hardware.nic_share
                             : hardware.nvlink_gbps * 1e9 * hardware.exchange_share;
  const double latency = is_far ? hardware.nic_latency_us : hardware.nvlink_latency_us;
  return bytes / rate + (work.cp - 1) * latency * kMicroseconds;
}

Directions LayerTime::compute() const {
  Directions sum = before;
  add_directions(sum, experts);
  add_directions(sum, after);
  return sum;
}

LayerTime layer_time(const config::Config& config,
                     const Workload& work,
                     const Hardware& hardware,
                     std::int64_t layer,
                     Recomputed whole) {
  LayerTime time;
  add_kernels(config.model, layer_kernels(config, work, layer), hardware, whole, time);
  const bool is_moe = config.model.is_moe_layer(layer);
  if (is_moe) {
    time.dispatch = time.combine = dispatch_seconds(config.model, work, hardware);
    if (time.dispatch > 0 && host_waits_for_counts(config.model)) {
      time.counts_wait = hardware.work.counts_us * kMicroseconds;
    }
    time.dispatch_is_recomputed =
        whole == Recomputed::Yes || recomputes_module(config.model, RecomputeModule::Moe);
  }
  add_tensor_exchange(config, work, hardware, tensor_exchanges(config.model, layer), time);
  add_context_exchange(config, work, hardware, time);
  return time;
}

LayerTime embed_time(const config::Config& config, const Workload& work, const Hardware& hardware) {
  return dense_like(config.model, embed_kernels(config, work), hardware);
}

LayerTime head_time(const config::Config& config, const Workload& work, const Hardware& hardware) {
  LayerTime time = dense_like(config.model, head_kernels(config, work), hardware);
  add_tensor_exchange(config, work, hardware, kExchangePair, time);
  return time;
}

LayerTime mtp_time(const config::Config& config, const Workload& work, const Hardware& hardware) {
  LayerTime time = layer_time(config, work, hardware, config.model.num_layers - 1, Recomputed::No);
  for (const LayerTime& more : {dense_like(config.model, mtp_kernels(config, work), hardware),
                                head_time(config, work, hardware)}) {
    add_directions(time.after, more.compute());
    time.host_f += more.host_f;
    time.host_b += more.host_b;
    time.products += more.products;
    time.memory += more.memory;
  }
  return time;
}

}  // namespace weft::plan
