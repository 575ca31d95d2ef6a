// The memory of a priced run: what its ranks keep, by component.
#include <algorithm>
#include <map>
#include <tuple>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/logits.h"
#include "weft/derive/memory.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/price.h"
#include "weft/plan/workload.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;

constexpr double kStreamElement = 2;

// What one stage keeps of a micro-batch.
struct StageKept {
  double layers = 0;
  double again = 0;   // on top of it, while a layer's backward runs
  double logits = 0;  // of every head, while its backward runs
};

class KeptByRank {
 public:
  KeptByRank(const Config& config, const Routing& routing, MemoryBook& book)
      : config_(config),
        book_(book),
        imbalance_(largest_imbalance(routing, config.model)),
        work_(workload_of(config, imbalance_)),
        pipeline_(derive::pipeline_of(config)),
        flights_(book.flights(config)) {
    for (const derive::Stage& stage : derive::stages_of(config.model).all) {
      stages_.push_back(of_stage(stage));
    }
  }

  // At the moment at which it is most: in the backward of a layer, or of the head.
  MemoryPrice of_rank(int rank) const {
    const std::vector<int> stages = pipeline_.stages_of(rank);
    double layers = 0, again = 0, logits = 0;
    for (const Flight& flight : flights_[base::at(rank)]) {
      double kept = 0;
      for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
        kept += flight[chunk] * stages_[base::at(stages[chunk])].layers;
      }
      layers = std::max(layers, kept);
    }
    for (const int stage : stages) {
      again = std::max(again, stages_[base::at(stage)].again);
      logits += stages_[base::at(stage)].logits;
    }
    MemoryPrice memory;
    memory.activations = layers + (logits > again ? 0 : again);
    memory.logits = logits > again ? logits : 0;
    return memory;
  }

  // Rows as they leave and as they arrive, and the gradients of both.
  double buffers() const {
    return 4 * work_.rows * number(config_.model.hidden_size) * kStreamElement + 6 * stream();
  }

 private:
  double stream() const {
    return work_.own_tokens * number(config_.model.hidden_size) * kStreamElement;
  }

  // Whole layers that run again, the place of each among its stage's.
  Recomputed whole(int place) const {
    const ModelConfig& model = config_.model;
    if (model.recompute_granularity != config::RecomputeGranularity::Full) return Recomputed::No;
    const bool block = model.recompute_method == config::RecomputeMethod::Block;
    const bool again = !block || place < model.recompute_num_layers.value_or(1);
    return again ? Recomputed::Yes : Recomputed::No;
  }

  // Layers of one kind keep the same: each is looked up once.
  const KeptLayer& of_layer(std::int64_t layer, Recomputed whole) const {
    const auto kind = std::tuple(config_.model.is_moe_layer(layer),
                                 derive::attention_of(config_.model, layer),
                                 whole);
    const auto known = layers_.find(kind);
    if (known != layers_.end()) return known->second;
    return layers_.emplace(kind, book_.layer(config_, layer, whole, imbalance_)).first->second;
  }

  StageKept of_stage(const derive::Stage& stage) const {
    const ModelConfig& model = config_.model;
    StageKept kept{.layers = stream()};  // what it received, or embedded
    for (int i = 0; i < stage.layers + stage.mtp_layers; ++i) {
      const std::int64_t layer =
          std::min<std::int64_t>(stage.first_layer + i, model.num_layers - 1);
      const KeptLayer& each = of_layer(layer, whole(i));
      kept.layers += each.kept;
      kept.again = std::max(kept.again, each.again);
    }
    if (!stage.loss) return kept;
    kept.logits = number(1 + stage.mtp_layers) * (logits() + stream());
    return kept;
  }

  // In fp32 with their gradient in the format of the parameters, or that alone.
  double logits() const {
    const bool both = derive::logits_kept(config_) == derive::LogitsKept::Whole;
    const double each = both ? 4 + kStreamElement : kStreamElement;
    return work_.tokens * number(config_.model.vocab_size) / work_.tp * each;
  }

  const Config& config_;
  MemoryBook& book_;
  const double imbalance_;
  const Workload work_;
  const derive::Pipeline pipeline_;
  const std::vector<std::vector<Flight>> flights_;
  mutable std::map<std::tuple<bool, derive::AttentionKind, Recomputed>, KeptLayer> layers_;
  std::vector<StageKept> stages_;
};

}  // namespace

std::vector<MemoryPrice> price_ranks(const Config& config,
                                     const Hardware& hardware,
                                     const Routing& routing,
                                     MemoryBook& book) {
  const KeptByRank kept(config, routing, book);
  const std::vector<derive::RankParameters> parameters = derive::rank_parameters(config);
  std::vector<MemoryPrice> ranks;
  for (int rank = 0; rank < static_cast<int>(config.model.pipeline_model_parallel_size); ++rank) {
    const derive::StateBytes state = derive::state_bytes(config, parameters[base::at(rank)]);
    MemoryPrice memory = kept.of_rank(rank);
    memory.pp_rank = rank;
    memory.weights = number(state.weights);
    memory.gradients = number(state.gradients);
    memory.optimizer = number(state.optimizer);
    memory.buffers = kept.buffers();
    memory.reserved = hardware.reserved_gb * 1e9;
    memory.capacity = hardware.memory_gb * 1e9;
    ranks.push_back(memory);
  }
  return ranks;
}

MemoryPrice price_memory(const Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         MemoryBook& book) {
  MemoryPrice most;
  for (const MemoryPrice& rank : price_ranks(config, hardware, routing, book)) {
    if (rank.total() > most.total()) most = rank;
  }
  return most;
}

MemoryPrice price_memory(const Config& config, const Hardware& hardware, const Routing& routing) {
  MemoryBook book;
  return price_memory(config, hardware, routing, book);
}

}  // namespace weft::plan
