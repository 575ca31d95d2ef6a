#include "weft/plan/price/price_memory.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/logits.h"
#include "weft/derive/memory/memory.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/derive/memory/optimizer_traffic.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/cost/workload.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;

// Kept bytes of one stage per micro-batch.
struct StageKept {
  double layers = 0;
  double host = 0;  // in host memory
  // Additional peaks: while a layer's backward runs, and while the head's backward runs.
  double again = 0, logits = 0;
  std::optional<double> counted = {};  // larger of the two, if counted
};

class KeptByRank {
 public:
  // `counted`: ranks to count, if the book has a counter.
  KeptByRank(const Config& config,
             const Routing& routing,
             MemoryBook& book,
             const std::set<int>& counted)
      : config_(config),
        book_(book),
        counted_(counted),
        imbalance_(largest_imbalance(routing, config.model)),
        work_(workload_of(config, imbalance_)),
        pipeline_(derive::pipeline_of(config)),
        flights_(book.flights(config)),
        offloaded_(book.offloaded(config)) {
    for (const derive::Stage& stage : book.stages(config)) stages_.push_back(of_stage(stage));
  }

  // Peak over the moments in a layer and in the head's backward.
  MemoryPrice of_rank(int rank) const {
    MemoryPrice most;
    const std::vector<int> stages = pipeline_.stages_of(rank);
    for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
      const StageKept& works = stages_[base::at(stages[chunk])];
      for (const Flight& flight : flights_[base::at(rank)][chunk]) {
        MemoryPrice memory = in_flight(stages, flight);
        most.host = std::max(most.host, memory.host);
        add_inside(works, memory);
        if (memory.total() > most.total()) memory.host = most.host, most = memory;
      }
    }
    return most;
  }

  double kept_in(int rank, std::size_t chunk) const {
    double most = 0;
    for (const Flight& flight : flights_[base::at(rank)][chunk]) {
      most = std::max(most, in_flight(pipeline_.stages_of(rank), flight).activations);
    }
    return most;
  }

 private:
  MemoryPrice in_flight(const std::vector<int>& stages, const Flight& flight) const {
    MemoryPrice memory;
    for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) {
      const StageKept& stage = stages_[base::at(stages[chunk])];
      memory.activations += flight[chunk] * stage.layers;
      memory.host += flight[chunk] * stage.host;
    }
    return memory;
  }

  // Adds the memory inside the active stage. By formula: the larger of a layer's gradients and the
  // logits, and rows in both layouts with their gradients.
  void add_inside(const StageKept& stage, MemoryPrice& memory) const {
    if (stage.counted) {
      memory.logits = std::min(stage.logits, *stage.counted);
      memory.buffers = *stage.counted - memory.logits;
      return;
    }
    if (stage.logits > stage.again) {
      memory.logits = stage.logits;
    } else {
      memory.activations += stage.again;
    }
    memory.buffers =
        4 * work_.rows * number(config_.model.hidden_size) * work_.element + 6 * stream();
  }

  double stream() const {
    return work_.own_tokens * number(config_.model.hidden_size) * work_.element;
  }

  struct KnownLayer {
    std::tuple<bool, derive::AttentionKind, Recomputed> kind;
    std::vector<schedule::PieceName> offloaded;
    KeptLayer kept;
    std::map<StageEnd, std::optional<double>> inside = {};
  };

  // Layers of one kind keep equal bytes: each kind is looked up once.
  KnownLayer& of_layer(const LayerAsked& asked) {
    const auto kind = std::tuple(config_.model.is_moe_layer(asked.layer),
                                 derive::attention_of(config_.model, asked.layer),
                                 asked.whole);
    for (KnownLayer& known : layers_) {
      if (known.kind == kind && known.offloaded == asked.offloaded) return known;
    }
    return layers_.emplace_back(KnownLayer{.kind = kind,
                                           .offloaded = asked.offloaded,
                                           .kept = book_.layer(config_, asked)});
  }

  StageEnd end_of(const derive::Stage& stage, int rank) const {
    if (stage.loss) return StageEnd::Head;
    return rank == pipeline_.loss_rank() ? StageEnd::SendBesideHead : StageEnd::Send;
  }

  StageKept of_stage(const derive::Stage& stage) {
    const ModelConfig& model = config_.model;
    // Each layer keeps its input; the last layer's output goes to the next stage or stays for the
    // head.
    StageKept kept{.layers = stage.loss ? stream() : 0};
    const int rank = pipeline_.rank_of(static_cast<int>(stages_.size()));
    const bool counts = counted_.contains(rank);
    const StageEnd end = end_of(stage, rank);
    std::array<double, 2> back{};  // offloading layers from the end, the last first
    for (int i = 0; i < stage.layers + stage.mtp_layers; ++i) {
      LayerAsked asked{.layer = std::min<std::int64_t>(stage.first_layer + i, model.num_layers - 1),
                       .whole = recomputed_at(model, i),
                       .imbalance = imbalance_};
      if (!offloaded_.empty() && i < stage.layers) {
        asked.offloaded = offloaded_[stages_.size()][base::at(i)];
      }
      KnownLayer& known = of_layer(asked);
      const KeptLayer& each = known.kept;
      kept.layers += each.kept;
      kept.again = std::max(kept.again, each.again);
      kept.host += each.host;
      if (each.away > 0) back = {each.away, back[0]};
      // The peak occurs in the last layers.
      constexpr int kLast = 2;
      const bool is_last = i + kLast >= stage.layers + stage.mtp_layers;
      if (counts && is_last) count_inside(asked, end, known, kept);
    }
    if (counts && stage.layers + stage.mtp_layers == 0) {
      // A stage with only the head behaves as behind a layer.
      const LayerAsked last{.layer = model.num_layers - 1,
                            .whole = recomputed_at(model, 0),
                            .imbalance = imbalance_};
      count_inside(last, end, of_layer(last), kept);
    }
    if (stage.loss) kept.logits = number(1 + stage.mtp_layers) * (logits() + stream());
    // The last layer of a stage runs backward first. By then its offloaded tensors and the previous
    // layer's are back: copies run one layer ahead. The last layer before the head offloads
    // nothing.
    kept.again += back[0] + (stage.loss ? 0 : back[1]);
    return kept;
  }

  // Adds the counted memory inside nodes, scaled by the imbalance of rows.
  void count_inside(const LayerAsked& asked, StageEnd end, KnownLayer& known, StageKept& kept) {
    const auto [inside, is_new] = known.inside.try_emplace(end);
    if (is_new) inside->second = book_.counted(config_, asked, end);
    if (!inside->second) return;
    kept.counted = std::max(kept.counted.value_or(0), *inside->second * imbalance_);
  }

  // Logits in fp32 with their gradient in the parameters' dtype, or the gradient alone.
  double logits() const {
    const bool both = derive::logits_kept(config_) == derive::LogitsKept::Whole;
    const double each = both ? 4 + work_.element : work_.element;
    return work_.tokens * number(config_.model.vocab_size) / work_.tp * each;
  }

  const Config& config_;
  MemoryBook& book_;
  const std::set<int>& counted_;
  const double imbalance_;
  const Workload work_;
  const derive::Pipeline pipeline_;
  const std::vector<ChunkFlights>& flights_;
  const OffloadedStages& offloaded_;
  std::deque<KnownLayer> layers_;
  std::vector<StageKept> stages_;
};

// Buckets of gradients and weights in transit between device and host.
double slot_bytes(const Config& config) {
  const derive::OptimizerOffload offload = derive::optimizer_offload(config);
  if (!offload.is_on()) return 0;
  const derive::OptimizerTraffic traffic = derive::optimizer_traffic(config);
  return offload.slots() * number(offload.bucket_size) * (traffic.download + traffic.upload);
}

// Memory of CUDA graphs, assumed after Megatron Bridge's performance guide: a few GB. With a
// pipeline more than 10 GB, since a layer has a graph per micro-batch in flight. A graph of the
// whole step has one set of inputs.
double graph_bytes(const ModelConfig& model) {
  constexpr double kFewGb = 3, kOfPipelineGb = 10, kGb = 1e9;
  switch (model.cuda_graph_impl) {
    case config::CudaGraphImpl::None:
      return 0;
    case config::CudaGraphImpl::FullIteration:
      return kFewGb * kGb;
    case config::CudaGraphImpl::Local:
    case config::CudaGraphImpl::TransformerEngine:
      return (model.pipeline_model_parallel_size > 1 ? kOfPipelineGb : kFewGb) * kGb;
  }
  return 0;
}

std::vector<MemoryPrice> price_ranks(const Config& config,
                                     const Hardware& hardware,
                                     const Routing& routing,
                                     MemoryBook& book,
                                     const std::set<int>& counted) {
  const KeptByRank kept(config, routing, book, counted);
  const std::vector<derive::RankParameters>& parameters = book.parameters(config);
  const double slots = slot_bytes(config);
  const bool has_dummies =
      hardware.work.keeps_dummy_gradients && config.model.gradient_accumulation_fusion;
  const double dummies = has_dummies ? book.dummy_gradients(config) : 0;
  std::vector<MemoryPrice> ranks;
  for (int rank = 0; rank < static_cast<int>(config.model.pipeline_model_parallel_size); ++rank) {
    const derive::StateBytes state = derive::state_bytes(config, parameters[base::at(rank)]);
    MemoryPrice memory = kept.of_rank(rank);
    memory.pp_rank = rank;
    memory.weights = number(state.weights);
    memory.gradients = number(state.gradients);
    memory.optimizer = number(state.optimizer);
    memory.buffers += dummies;
    memory.graphs = graph_bytes(config.model);
    memory.reserved = hardware.reserved_gb * 1e9;
    memory.capacity = hardware.memory_gb * 1e9;
    memory.host += number(state.offloaded) + (state.offloaded > 0 ? slots : 0);
    memory.host_capacity = hardware.host_room();
    ranks.push_back(memory);
  }
  return ranks;
}

}  // namespace

double kept_in_chunk(const Config& config, int rank, std::size_t chunk, MemoryBook& book) {
  return KeptByRank(config, {}, book, {}).kept_in(rank, chunk);
}

std::vector<MemoryPrice> price_ranks(const Config& config,
                                     const Hardware& hardware,
                                     const Routing& routing,
                                     MemoryBook& book) {
  std::set<int> all;
  for (int rank = 0; rank < static_cast<int>(config.model.pipeline_model_parallel_size); ++rank) {
    all.insert(rank);
  }
  return price_ranks(config, hardware, routing, book, all);
}

MemoryPrice price_memory(const Config& config,
                         const Hardware& hardware,
                         const Routing& routing,
                         MemoryBook& book) {
  std::vector<MemoryPrice> ranks = price_ranks(config, hardware, routing, book, {});
  const double host = std::ranges::max(ranks, {}, &MemoryPrice::host).host;
  const auto most = [&] { return std::ranges::max(ranks, {}, &MemoryPrice::total); };
  if (book.counts()) {
    // Candidates for the largest rank: the formula is more accurate than this.
    constexpr double kFormulaWithin = 0.05;
    const double least = (1 - kFormulaWithin) * most().total();
    std::set<int> near;
    for (const MemoryPrice& rank : ranks) {
      if (rank.total() >= least) near.insert(rank.pp_rank);
    }
    ranks = price_ranks(config, hardware, routing, book, near);
    std::erase_if(ranks, [&](const MemoryPrice& rank) { return !near.contains(rank.pp_rank); });
  }
  MemoryPrice result = most();
  result.host = host;
  return result;
}

MemoryPrice price_memory(const Config& config, const Hardware& hardware, const Routing& routing) {
  MemoryBook book;
  return price_memory(config, hardware, routing, book);
}

}  // namespace weft::plan
