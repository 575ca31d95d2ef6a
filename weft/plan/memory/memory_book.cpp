#include "weft/plan/memory/memory_book.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/flops.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/cost/layers_alone.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/memory/counted_layers.h"
#include "weft/plan/memory/kept_formula.h"
#include "weft/plan/price/short_step.h"
#include "weft/rules/missing.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;

// Layers of a small run. The first layer has the received input, and the last is never offloaded; a
// middle layer shows the cost of one more.
constexpr std::int64_t kAlone = 3, kAloneOffloaded = 4;

LayerOfBook key_of(const Config& config, const LayerAsked& asked) {
  const ModelConfig& model = config.model;
  LayerOfBook key{
      .attention = derive::attention_of(model, asked.layer),
      .tp = model.tensor_model_parallel_size,
      .cp = model.context_parallel_size,
      .number = number_of(model),
      .shares_sequence = model.sequence_parallel,
      .overlaps_tp = config.comm_overlap.tp_comm_overlap,
      .whole = asked.whole,
      .is_selective = model.recompute_granularity == config::RecomputeGranularity::Selective,
      .is_moe = model.is_moe_layer(asked.layer)};
  if (key.is_selective) key.recomputed = model.recompute_modules;
  for (const schedule::PieceName& part : asked.offloaded) {
    key.offloaded.emplace_back(part.piece, part.part);
  }
  if (!key.is_moe) return key;
  // Copies of a token per rank depend on the number of ranks.
  const bool is_flex = model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  const std::int64_t ep = model.expert_model_parallel_size;
  key.etp = model.expert_shards();
  key.ep = is_flex ? ep : std::min<std::int64_t>(ep, 2);
  key.dispatcher = model.moe_token_dispatcher_type;
  key.slices = config.comm_overlap.moe_token_slices;
  key.is_stashed = model.moe_paged_stash;
  key.capacity = model.moe_expert_rank_capacity_factor.value_or(0);
  key.imbalance = asked.imbalance;
  return key;
}

StagesOfBook stages_key_of(const ModelConfig& model) {
  return {.pp = model.pipeline_model_parallel_size,
          .vpp = derive::virtual_stages(model),
          .layout = model.pipeline_model_parallel_layout};
}

OffloadableOfBook offloadable_key_of(const Config& config, const LayerAsked& asked) {
  return {.layer = key_of(config, asked),
          .sequences = config.train.micro_batch_size,
          .modules = config.model.offload_modules};
}

// Config with a negligible head.
Config without_vocabulary(Config alone) {
  ModelConfig& model = alone.model;
  model.vocab_size = model.tensor_model_parallel_size;
  model.should_pad_vocab = false;
  return alone;
}

// Host bytes of a layer in the plan.
double hosted(const schedule::RankPlan& plan, std::size_t layer, const schedule::Load& load) {
  double bytes = 0;
  for (const schedule::PieceAnatomy& piece : plan.anatomy.layers[layer]) {
    if (!piece.is_offloaded) continue;
    const schedule::Node node =
        schedule::node_of(piece, static_cast<int>(layer), schedule::Direction::O, 0);
    bytes += number(piece.offloaded_bytes().of(schedule::share_of(plan.anatomy, node, load)));
  }
  return bytes;
}

KeptLayer kept_by_pieces(const Config& alone, double imbalance, const OffloadedParts& parts) {
  const grid::Grid grid(derive::layout_of(alone));
  CHECK(grid.pp() == 1, "{} pipeline ranks", grid.pp());
  const schedule::RankPlan plan =
      schedule::plan_training(alone, grid, {0}, config::RowBudget::AsConfigured, detail_with(parts))
          .front();
  schedule::Load load = expected_load(alone, plan.anatomy.flow);
  load.rows = static_cast<std::int64_t>(number(load.rows) * imbalance);
  const std::vector<std::int64_t> kept =
      schedule::kept_after_each(plan.training, plan.anatomy, [&](const auto&) { return load; });
  // Kept bytes after each layer's forward.
  std::vector<std::int64_t> after(base::at(alone.model.num_layers));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const schedule::Node& node = plan.training.entries[i].node;
    if (node.direction != schedule::Direction::F || node.layer == schedule::kNone) continue;
    after[base::at(node.layer)] = kept[i];
  }
  const std::int64_t all = after.back(), most = std::ranges::max(kept);
  const std::size_t one = parts.empty() ? after.size() - 1 : after.size() - 2;
  return {.kept = number(after[one] - after[one - 1]),
          .again = number(std::max<std::int64_t>(0, most - all)),
          .away = 0,
          .host = hosted(plan, one, load)};
}

// Factor for parts without a schedule, by formula.
double share_by_formula(const Config& config, const Config& alone, std::int64_t layer) {
  const Config plain = rules::without_missing(config);
  const DType products = number_of(config.model);
  const bool are_wide = products == DType::BF16 || products == DType::F32;
  if (are_wide && !config.model.moe_paged_stash &&
      derive::attention_of(config.model, layer) == derive::attention_of(alone.model, 0)) {
    return 1;
  }
  return kept_by_formula(config, workload_of(config), layer) /
         kept_by_formula(plain, workload_of(plain), layer);
}

// Gradients of rows on both sides of the experts, in a layer's backward.
double row_gradients(const Config& alone, double imbalance) {
  if (alone.model.experts() == 0) return 0;
  const Workload work = workload_of(alone, imbalance);
  return 2 * work.element * work.rows * number(alone.model.hidden_size);
}

KeptLayer make_layer(const Config& config, const LayerAsked& asked) {
  OffloadedParts parts;
  for (const schedule::PieceName& name : asked.offloaded) parts.push_back({.name = name});
  Config alone = without_vocabulary(layers_alone(config, asked.layer, asked.whole));
  alone.model.num_layers = parts.empty() ? kAlone : kAloneOffloaded;
  alone.train.micro_batch_size = 1;
  alone = with_micro_batches(std::move(alone), 1);
  KeptLayer kept = kept_by_pieces(alone, asked.imbalance, parts);
  kept.again += row_gradients(alone, asked.imbalance);
  const bool is_whole = asked.whole == Recomputed::Yes;
  return kept * (is_whole ? 1 : share_by_formula(config, alone, asked.layer));
}

bool keeps_as_much(const Flight& one, const Flight& other) {
  return std::ranges::equal(one, other, [](int a, int b) { return a >= b; });
}

class FlightLog {
 public:
  explicit FlightLog(const schedule::PipelineShape& shape)
      : rounds_(schedule::training_rounds(shape)),
        merges_(shape.extra_warm_up > 0),
        now_(base::at(shape.vpp)),
        all_(base::at(shape.vpp)) {
    for (const auto& round : rounds_) {
      for (const schedule::Turn& turn : round) {
        if (turn.direction == schedule::Direction::W)
          put_off_.insert({turn.chunk, turn.micro_batch});
      }
    }
  }

  ChunkFlights read() {
    for (const auto& round : rounds_) {
      // Merged turns free their bytes layer by layer.
      if (merges_ && round.size() > 1) {
        note_all(round);
        for (const schedule::Turn& turn : round) take(turn);
        note_all(round);
        continue;
      }
      for (const schedule::Turn& turn : round) {
        const bool is_forward = turn.direction == schedule::Direction::F;
        if (!is_forward) note(turn.chunk);
        take(turn);
        if (is_forward) note(turn.chunk);
      }
    }
    return std::move(all_);
  }

 private:
  void take(const schedule::Turn& turn) {
    int& chunk = now_[base::at(turn.chunk)];
    if (turn.direction == schedule::Direction::F) {
      ++chunk;
    } else if (turn.direction == schedule::Direction::W ||
               !put_off_.contains({turn.chunk, turn.micro_batch})) {
      --chunk;
    }
  }

  void note_all(const std::vector<schedule::Turn>& round) {
    for (const schedule::Turn& turn : round) note(turn.chunk);
  }

  void note(int chunk) {
    std::vector<Flight>& all = all_[base::at(chunk)];
    const auto covers = [&](const Flight& one) { return keeps_as_much(one, now_); };
    if (std::ranges::any_of(all, covers)) return;
    std::erase_if(all, [&](const Flight& one) { return keeps_as_much(now_, one); });
    all.push_back(now_);
  }

  const std::vector<std::vector<schedule::Turn>> rounds_;
  const bool merges_;
  std::set<std::pair<int, int>> put_off_;  // chunks and micro-batches with a separate W turn
  Flight now_;
  ChunkFlights all_;
};

}  // namespace

KeptLayer KeptLayer::operator*(double factor) const {
  return {.kept = kept * factor,
          .again = again * factor,
          .away = away * factor,
          .host = host * factor};
}

template <typename Key, typename Value, typename Make>
const Value& MemoryBook::look_up(std::map<Key, Value>& known, const Key& key, const Make& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
  }
  Value made = make();
  const std::lock_guard lock(mutex_);
  return known.emplace(key, std::move(made)).first->second;
}

KeptLayer MemoryBook::layer(const Config& config, const LayerAsked& asked) {
  const auto make = [&] { return make_layer(config, asked); };
  KeptLayer kept =
      look_up(layers_, key_of(config, asked), make) * number(config.train.micro_batch_size);
  if (asked.offloaded.empty()) return kept;
  LayerAsked here = asked;
  here.offloaded.clear();
  const KeptLayer all = layer(config, here);
  kept.away = std::max(0.0, all.kept - kept.kept);
  kept.again = std::max(kept.again - kept.away, all.again);
  return kept;
}

const std::vector<ChunkFlights>& MemoryBook::flights(const Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  schedule::PipelineShape shape = schedule::pipeline_shape(config, dp, 0);
  shape.micro_batches = static_cast<int>(
      fewest_micro_batches(config.model, std::max<std::int64_t>(1, micro_batches_of(config))));
  const TurnsOfBook key{.pp = shape.pp,
                        .vpp = shape.vpp,
                        .micro_batches = shape.micro_batches,
                        .group = shape.group,
                        .extra_warm_up = shape.extra_warm_up,
                        .order = shape.order};
  return look_up(flights_, key, [&] {
    std::vector<ChunkFlights> all;
    for (shape.pp_rank = 0; shape.pp_rank < shape.pp; ++shape.pp_rank) {
      all.push_back(FlightLog(shape).read());
    }
    return all;
  });
}

std::optional<double> MemoryBook::counted(const Config& config,
                                          const LayerAsked& asked,
                                          StageEnd end) {
  if (!counter_) return std::nullopt;
  const Config small = small_pipeline(config, asked, end);
  const CountedOfBook key{.layer = key_of(config, asked),
                          .vpp = derive::virtual_stages(small.model),
                          .sequences = small.train.micro_batch_size,
                          .batch = small.train.global_batch_size,
                          .pp = small.model.pipeline_model_parallel_size,
                          .ep = config.model.expert_model_parallel_size,
                          .merges = config.comm_overlap.overlap_moe_expert_parallel_comm,
                          .delays = config.comm_overlap.delay_wgrad_compute,
                          .end = end};
  return look_up(counted_, key, [&] { return counted_extra(small, end, counter_); });
}

const std::vector<derive::Stage>& MemoryBook::stages(const Config& config) {
  return look_up(stages_, stages_key_of(config.model), [&] {
    return derive::stages_of(config.model).all;
  });
}

const std::vector<derive::RankParameters>& MemoryBook::parameters(const Config& config) {
  const ModelConfig& model = config.model;
  const ParametersOfBook key{.stages = stages_key_of(model),
                             .tp = model.tensor_model_parallel_size,
                             .ep = model.expert_model_parallel_size,
                             .etp = model.expert_shards(),
                             .placement = derive::placement_of(config)};
  return look_up(parameters_, key, [&] { return derive::rank_parameters(config); });
}

double MemoryBook::flops_per_token(const Config& config) {
  return look_up(flops_, config.model.seq_length, [&] {
    return derive::flops_per_token(config.model);
  });
}

double MemoryBook::dummy_gradients(const Config& config) {
  const ModelConfig& model = config.model;
  const std::pair key(model.tensor_model_parallel_size, model.expert_shards());
  return look_up(dummies_, key, [&] {
    const Workload work = workload_of(config);
    std::set<std::pair<double, double>> shapes;
    for (const std::int64_t layer : {std::int64_t{0}, model.num_layers - 1}) {
      for (const Kernel& kernel : layer_kernels(config, work, layer)) {
        const bool is_gradient = kernel.direction == schedule::Direction::W;
        if (is_gradient && kernel.kind == KernelKind::Product) shapes.emplace(kernel.m, kernel.n);
      }
    }
    double bytes = 0;
    for (const auto& [rows, columns] : shapes) bytes += rows * columns * work.element;
    return bytes;
  });
}

const std::vector<OffloadablePart>& MemoryBook::offloadable(const Config& config,
                                                            std::int64_t layer,
                                                            Recomputed whole) {
  const OffloadableOfBook key = offloadable_key_of(config, {.layer = layer, .whole = whole});
  return look_up(offloadable_, key, [&] { return offloadable_parts(config, layer, whole); });
}

const OffloadedStages& MemoryBook::offloaded(const Config& config) {
  static const OffloadedStages kNone;
  const ModelConfig& model = config.model;
  if (!model.fine_grained_activation_offloading) return kNone;
  const OffloadedOfBook key{
      .last = offloadable_key_of(config, {.layer = model.num_layers - 1}),
      .stages = stages_key_of(model),
      .is_full = model.recompute_granularity == config::RecomputeGranularity::Full};
  return look_up(offloaded_, key, [&] {
    const auto make = [&](std::int64_t layer, Recomputed whole) {
      return offloadable(config, layer, whole);
    };
    const OffloadableLayers layers(model, stages(config), make);
    return offloaded_of_stages(layers, offloaded_parts(config, layers));
  });
}

}  // namespace weft::plan
