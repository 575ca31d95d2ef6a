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

template <typename Words>
void add_words(std::string& name, const Words& words) {
  for (const auto& word : words) name += base::text(" {}", static_cast<int>(word));
}

// Name with every planner setting that affects a layer's price.
std::string run_of(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const config::CommOverlapConfig& overlap = config.comm_overlap;
  std::string name = base::text(
      "{} {} {} {} {} {} {} {} {} {} {} {} {} {}",
      model.tensor_model_parallel_size,
      model.context_parallel_size,
      model.expert_model_parallel_size,
      model.expert_shards(),
      config.train.micro_batch_size,
      model.sequence_parallel,
      static_cast<int>(model.moe_token_dispatcher_type),
      model.moe_flex_dispatcher_backend ? static_cast<int>(*model.moe_flex_dispatcher_backend) : -1,
      overlap.overlap_moe_expert_parallel_comm,
      overlap.delay_wgrad_compute,
      overlap.tp_comm_overlap,
      static_cast<int>(number_of(model)),
      static_cast<int>(model.cuda_graph_impl),
      model.recompute_granularity ? static_cast<int>(*model.recompute_granularity) : -1);
  add_words(name, model.cuda_graph_modules);
  name += ";";
  if (model.recompute_modules) add_words(name, *model.recompute_modules);
  return name;
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

const LayerPrice& FormulaLayers::of(const std::string& name,
                                    const std::function<LayerPrice()>& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(name);
    if (found != known_.end()) return found->second;
  }
  LayerPrice price = make();
  const std::lock_guard lock(mutex_);
  return known_.emplace(name, price).first->second;
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
  if (known_ != nullptr) name_ = run_of(config);
}

const LayerPrice& LayerPrices::of(std::int64_t layer, int place_in_stage) {
  const config::ModelConfig& model = config_.model;
  const Recomputed whole = recomputed_at(model, place_in_stage);
  const bool is_moe = model.is_moe_layer(layer);
  const double imbalance = is_moe ? imbalance_of(routing_, model, layer) : 1;
  const Kind kind{derive::attention_of(model, layer),
                  derive::is_windowed(model, layer),
                  is_moe,
                  whole,
                  imbalance};
  const auto found = kinds_.find(kind);
  if (found != kinds_.end()) return found->second;
  const auto make = [&] { return price(layer, whole, imbalance); };
  if (depth_ == Depth::Schedule || known_ == nullptr) {
    return kinds_.emplace(kind, make()).first->second;
  }
  const std::string name = base::text(" layer {} {} {} {} {}",
                                      static_cast<int>(derive::attention_of(model, layer)),
                                      derive::is_windowed(model, layer),
                                      is_moe,
                                      whole == Recomputed::Yes,
                                      imbalance);
  return kinds_.emplace(kind, by_formula(name, make)).first->second;
}

LayerPrice LayerPrices::by_formula(const std::string& name,
                                   const std::function<LayerPrice()>& make) const {
  return known_ == nullptr ? make() : known_->of(name_ + name, make);
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
  return by_formula(" embed", [&] {
    return end_price(embed_time(config_, workload_on(hardware_, config_), hardware_));
  });
}

LayerPrice LayerPrices::head() const {
  return by_formula(" head", [&] {
    return end_price(head_time(config_, workload_on(hardware_, config_), hardware_));
  });
}

LayerPrice LayerPrices::mtp() const {
  return by_formula(" mtp", [&] {
    const double imbalance = imbalance_of(routing_, config_.model, config_.model.num_layers - 1);
    return end_price(mtp_time(config_, workload_on(hardware_, config_, imbalance), hardware_));
  });
}

}  // namespace weft::plan
