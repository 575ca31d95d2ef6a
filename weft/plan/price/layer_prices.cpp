#include "weft/plan/price/layer_prices.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/memory/offloaded_layers.h"

namespace weft::plan {
namespace {

// Raises the exposed exchange to at least the formula's value: exchanges in steps also slow the
// products that cover them, as measured runs show.
void keep_stepped_exchange(double least, Stretch& stretch) {
  const double more = std::max(0.0, least - stretch.tp);
  stretch.tp += more;
  stretch.total += more;
}

FormulaRun run_of(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const config::CommOverlapConfig& overlap = config.comm_overlap;
  return {.tp = model.tensor_model_parallel_size,
          .cp = model.context_parallel_size,
          .ep = model.expert_model_parallel_size,
          .etp = model.expert_shards(),
          .sequences = config.train.micro_batch_size,
          .shares_sequence = model.sequence_parallel,
          .dispatcher = model.moe_token_dispatcher_type,
          .backend = model.moe_flex_dispatcher_backend,
          .merges = overlap.overlap_moe_expert_parallel_comm,
          .delays = overlap.delay_wgrad_compute,
          .overlaps_tp = overlap.tp_comm_overlap,
          .number = number_of(model),
          .graphs = model.cuda_graph_impl,
          .granularity = model.recompute_granularity,
          .captured = model.cuda_graph_modules,
          .recomputed = model.recompute_modules};
}

// Stretch of consecutive nodes: host time precedes that of compute nodes.
NodeStretch stretch_by_launches(double priced, double device, double compute) {
  const double host = std::max(0.0, priced - device);
  if (compute <= 0) return {};
  return {.all = 1, .compute = 1 + host / compute, .launches = host / (compute + host)};
}

double compute_of(const Stretch& stretch) {
  return stretch.total - stretch.ep - stretch.tp - stretch.cp - stretch.copy;
}

// Stretch of a merged forward and backward, which concurrent transfers lengthen first.
NodeStretch stretch_of_merged(const PlainTime& merged,
                              const SimulatedLayer& clocked,
                              double alone) {
  if (clocked.merged_undisturbed <= 0) return {};
  const double slower = clocked.merged.total / clocked.merged_undisturbed;
  NodeStretch stretch = stretch_by_launches(merged.total(), clocked.merged.total, alone * slower);
  stretch.all = slower;
  return stretch;
}

}  // namespace

FormulaLayers::OfRun& FormulaLayers::of(const FormulaRun& run) {
  const std::lock_guard lock(mutex_);
  return known_[run];
}

const LayerPrice& FormulaLayers::of(OfRun& run,
                                    const FormulaKind& kind,
                                    const std::function<LayerPrice()>& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = run.find(kind);
    if (found != run.end()) return found->second;
  }
  LayerPrice price = make();
  const std::lock_guard lock(mutex_);
  return run.emplace(kind, price).first->second;
}

LayerPrices::LayerPrices(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         const LayerMemory& memory)
    : config_(config),
      hardware_(hardware),
      routing_(routing),
      depth_(Depth::Schedule),
      memory_(memory) {}

LayerPrices::LayerPrices(const config::Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         FormulaLayers* known)
    : config_(config),
      hardware_(hardware),
      routing_(routing),
      depth_(Depth::Formula),
      known_(known) {
  if (known_ != nullptr) known_of_run_ = &known_->of(run_of(config));
}

const LayerPrice& LayerPrices::of(std::int64_t layer, int place_in_stage) {
  const config::ModelConfig& model = config_.model;
  const Recomputed whole = recomputed_at(model, place_in_stage);
  const bool is_moe = model.is_moe_layer(layer);
  const double imbalance = is_moe ? imbalance_of(routing_, model, layer) : 1;
  const FormulaKind kind{.attention = derive::attention_of(model, layer),
                         .is_windowed = derive::is_windowed(model, layer),
                         .is_moe = is_moe,
                         .whole = whole,
                         .imbalance = imbalance};
  const auto found = kinds_.find(kind);
  if (found != kinds_.end()) return found->second;
  const auto make = [&] { return price(layer, whole, imbalance); };
  if (depth_ == Depth::Schedule || known_ == nullptr) {
    return kinds_.emplace(kind, make()).first->second;
  }
  return kinds_.emplace(kind, by_formula(kind, make)).first->second;
}

LayerPrice LayerPrices::by_formula(const FormulaKind& kind,
                                   const std::function<LayerPrice()>& make) const {
  return known_ == nullptr ? make() : known_->of(*known_of_run_, kind, make);
}

LayerPrice LayerPrices::price(std::int64_t layer, Recomputed whole, double imbalance) const {
  const bool merges = config_.comm_overlap.overlap_moe_expert_parallel_comm;
  const Workload work = workload_on(hardware_, config_, imbalance);
  LayerPrice price{.time = layer_time(config_, work, hardware_, layer, whole)};
  if (depth_ == Depth::Schedule) {
    SimulatedLayer clocked = simulated(layer, whole, imbalance);
    keep_stepped_exchange(price.time.tp.f, clocked.forward);
    keep_stepped_exchange(price.time.tp.d, clocked.backward);
    price.plain = plain_time(config_, price.time, clocked.forward, clocked.backward);
    price.merged = price.plain;
    price.forward = stretch_by_launches(price.plain.forward,
                                        clocked.forward.total,
                                        compute_of(clocked.forward));
    price.backward = stretch_by_launches(price.plain.backward,
                                         clocked.backward.total,
                                         compute_of(clocked.backward));
    if (!merges || price.time.dispatch <= 0) return price;
    price.merged = merged_time(config_, price.time, clocked.merged);
    price.forward = price.backward =
        stretch_of_merged(price.merged, clocked, price.time.compute().total());
    price.round = {.forward = clocked.round.total,
                   .backward = 0,
                   .ep = clocked.round.ep,
                   .tp = clocked.round.tp,
                   .cp = clocked.round.cp,
                   .copy = clocked.round.copy};
    return price;
  }
  price.plain = plain_time(config_, price.time);
  if (merges) price.merged = merged_time(config_, price.time, hardware_);
  return price;
}

SimulatedLayer LayerPrices::simulated(std::int64_t layer,
                                      Recomputed whole,
                                      double imbalance) const {
  const auto make = [&] { return simulate_layer(config_, hardware_, routing_, layer, whole); };
  if (memory_.layers == nullptr) return make();
  const config::ModelConfig& model = config_.model;
  const std::string name = base::text("{}; {} {} {} {} {}",
                                      memory_.run,
                                      static_cast<int>(derive::attention_of(model, layer)),
                                      derive::is_windowed(model, layer),
                                      model.is_moe_layer(layer),
                                      whole == Recomputed::Yes,
                                      imbalance);
  return memory_.layers->of(name, make);
}

LayerPrice LayerPrices::end_price(const LayerTime& time) const {
  const PlainTime plain = plain_time(config_, time);
  const Directions compute = time.compute();
  return {.time = time,
          .plain = plain,
          .merged = plain,
          .round = {},
          .forward = stretch_by_launches(plain.forward, compute.f + time.tp.f, compute.f),
          .backward = stretch_by_launches(plain.backward,
                                          compute.d + compute.w + time.tp.d,
                                          compute.d + compute.w)};
}

LayerPrice LayerPrices::embed() const {
  return by_formula({.place = FormulaKind::Place::Embed}, [&] {
    return end_price(embed_time(config_, workload_on(hardware_, config_), hardware_));
  });
}

LayerPrice LayerPrices::head() const {
  return by_formula({.place = FormulaKind::Place::Head}, [&] {
    return end_price(head_time(config_, workload_on(hardware_, config_), hardware_));
  });
}

LayerPrice LayerPrices::mtp() const {
  return by_formula({.place = FormulaKind::Place::Mtp}, [&] {
    const double imbalance = imbalance_of(routing_, config_.model, config_.model.num_layers - 1);
    return end_price(mtp_time(config_, workload_on(hardware_, config_, imbalance), hardware_));
  });
}

}  // namespace weft::plan
