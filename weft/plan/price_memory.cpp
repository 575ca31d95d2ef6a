// The memory of a priced run: what its ranks keep, by component.
#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/logits.h"
#include "weft/derive/memory.h"
#include "weft/derive/optimizer_offload.h"
#include "weft/derive/optimizer_traffic.h"
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
  double host = 0;    // in the host's memory
};

class KeptByRank {
 public:
  KeptByRank(const Config& config, const Routing& routing, MemoryBook& book)
      : config_(config),
        book_(book),
        imbalance_(largest_imbalance(routing, config.model)),
        work_(workload_of(config, imbalance_)),
        pipeline_(derive::pipeline_of(config)),
        flights_(book.flights(config)),
        offloaded_(book.offloaded(config)) {
    for (const derive::Stage& stage : book.stages(config)) stages_.push_back(of_stage(stage));
  }

  // At the moment at which it is most: in the backward of a layer, or of the head.
  MemoryPrice of_rank(int rank) const {
    const std::vector<int> stages = pipeline_.stages_of(rank);
    double layers = 0, again = 0, logits = 0, host = 0;
    for (const Flight& flight : flights_[base::at(rank)]) {
      double kept = 0, there = 0;
      for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
        const StageKept& stage = stages_[base::at(stages[chunk])];
        kept += flight[chunk] * stage.layers;
        there += flight[chunk] * stage.host;
      }
      layers = std::max(layers, kept);
      host = std::max(host, there);
    }
    for (const int stage : stages) {
      again = std::max(again, stages_[base::at(stage)].again);
      logits += stages_[base::at(stage)].logits;
    }
    MemoryPrice memory;
    memory.activations = layers + (logits > again ? 0 : again);
    memory.logits = logits > again ? logits : 0;
    memory.host = host;
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

  // Layers of one kind keep the same: each is looked up once.
  const KeptLayer& of_layer(LayerAsked asked) const {
    const auto kind = std::tuple(config_.model.is_moe_layer(asked.layer),
                                 derive::attention_of(config_.model, asked.layer),
                                 asked.whole);
    for (const KnownLayer& known : layers_) {
      if (known.kind == kind && known.offloaded == asked.offloaded) return known.kept;
    }
    const KeptLayer kept = book_.layer(config_, asked);
    layers_.push_back({.kind = kind, .offloaded = std::move(asked.offloaded), .kept = kept});
    return layers_.back().kept;
  }

  StageKept of_stage(const derive::Stage& stage) const {
    const ModelConfig& model = config_.model;
    StageKept kept{.layers = stream()};  // what it received, or embedded
    double back = 0, back_before = 0;
    for (int i = 0; i < stage.layers + stage.mtp_layers; ++i) {
      LayerAsked asked{.layer = std::min<std::int64_t>(stage.first_layer + i, model.num_layers - 1),
                       .whole = recomputed_at(model, i),
                       .imbalance = imbalance_};
      if (!offloaded_.empty() && i < stage.layers) {
        asked.offloaded = offloaded_[stages_.size()][base::at(i)];
      }
      const KeptLayer& each = of_layer(std::move(asked));
      kept.layers += each.kept;
      kept.again = std::max(kept.again, each.again);
      kept.host += each.host;
      back_before = std::exchange(back, each.away);
    }
    // The last layer of a stage goes back first. What it and the one before it have offloaded is
    // there again then: copies come in one layer ahead.
    kept.again += back + back_before;
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

  struct KnownLayer {
    std::tuple<bool, derive::AttentionKind, Recomputed> kind;
    std::vector<schedule::PieceName> offloaded;
    KeptLayer kept;
  };

  const Config& config_;
  MemoryBook& book_;
  const double imbalance_;
  const Workload work_;
  const derive::Pipeline pipeline_;
  const std::vector<std::vector<Flight>>& flights_;
  const OffloadedStages& offloaded_;
  mutable std::deque<KnownLayer> layers_;
  std::vector<StageKept> stages_;
};

// Buckets of gradients and weights between device and host.
double slot_bytes(const Config& config) {
  const derive::OptimizerOffload offload = derive::optimizer_offload(config);
  if (!offload.is_on()) return 0;
  const derive::OptimizerTraffic traffic = derive::optimizer_traffic(config);
  return offload.slots() * number(offload.bucket_size) * (traffic.download + traffic.upload);
}

}  // namespace

std::vector<MemoryPrice> price_ranks(const Config& config,
                                     const Hardware& hardware,
                                     const Routing& routing,
                                     MemoryBook& book) {
  const KeptByRank kept(config, routing, book);
  const std::vector<derive::RankParameters>& parameters = book.parameters(config);
  const double slots = slot_bytes(config);
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
    memory.host += number(state.offloaded) + (state.offloaded > 0 ? slots : 0);
    memory.host_capacity = hardware.host_room();
    ranks.push_back(memory);
  }
  return ranks;
}

MemoryPrice price_memory(const Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         MemoryBook& book) {
  MemoryPrice most;
  double host = 0;
  for (const MemoryPrice& rank : price_ranks(config, hardware, routing, book)) {
    host = std::max(host, rank.host);
    if (rank.total() > most.total()) most = rank;
  }
  most.host = host;
  return most;
}

MemoryPrice price_memory(const Config& config, const Hardware& hardware, const Routing& routing) {
  MemoryBook book;
  return price_memory(config, hardware, routing, book);
}

}  // namespace weft::plan
