#include "weft/plan/memory/memory_book.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
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

template <typename Words>
std::string joined_words(const Words& words) {
  std::string all;
  for (const auto& word : words) all += std::string(config::word(word)) + ",";
  return all;
}

// Name with every planner setting that a layer with one sequence per micro-batch depends on.
std::string layer_name(const Config& config, const LayerAsked& asked) {
  const ModelConfig& model = config.model;
  const bool is_moe = model.is_moe_layer(asked.layer);
  std::string name = base::text("{} {} {} {} {} {} {}",
                                static_cast<int>(derive::attention_of(model, asked.layer)),
                                model.tensor_model_parallel_size,
                                model.context_parallel_size,
                                static_cast<int>(number_of(model)),
                                model.sequence_parallel,
                                config.comm_overlap.tp_comm_overlap,
                                static_cast<int>(asked.whole));
  if (model.recompute_granularity == config::RecomputeGranularity::Selective) {
    name += " " + (model.recompute_modules ? joined_words(*model.recompute_modules) : "core");
  }
  for (const schedule::PieceName& part : asked.offloaded) {
    name += base::text(" off {} {}", static_cast<int>(part.piece), static_cast<int>(part.part));
  }
  if (!is_moe) return name + " dense";
  // Copies of a token per rank depend on the number of ranks.
  const bool is_flex = model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  const std::int64_t ep = model.expert_model_parallel_size;
  return name + base::text(" moe {} {} {} {} {} {} {}",
                           model.expert_shards(),
                           is_flex ? ep : std::min<std::int64_t>(ep, 2),
                           static_cast<int>(model.moe_token_dispatcher_type),
                           config.comm_overlap.moe_token_slices,
                           model.moe_paged_stash,
                           model.moe_expert_rank_capacity_factor.value_or(0),
                           asked.imbalance);
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
    bytes += number(piece.copied().of(schedule::share_of(plan.anatomy, node, load)));
  }
  return bytes;
}

KeptLayer kept_by_pieces(const Config& alone, double imbalance, const OffloadedParts& parts) {
  const grid::Grid grid(derive::layout_of(alone));
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(alone, grid, config::RowBudget::AsConfigured, detail_with(parts));
  CHECK(plans.size() == 1, "{} pipeline ranks", plans.size());
  const schedule::RankPlan& plan = plans.front();
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
  const Number products = number_of(config.model);
  const bool are_wide = products == Number::Bf16 || products == Number::Fp32;
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

bool has_as_much(const Flight& one, const Flight& other) {
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
    const auto covers = [&](const Flight& one) { return has_as_much(one, now_); };
    if (std::ranges::any_of(all, covers)) return;
    std::erase_if(all, [&](const Flight& one) { return has_as_much(now_, one); });
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

template <typename Value, typename Make>
const Value& MemoryBook::look_up(std::map<std::string, Value>& known,
                                 const std::string& name,
                                 const Make& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = known.find(name);
    if (found != known.end()) return found->second;
  }
  Value made = make();
  const std::lock_guard lock(mutex_);
  return known.emplace(name, std::move(made)).first->second;
}

KeptLayer MemoryBook::layer(const Config& config, const LayerAsked& asked) {
  const auto make = [&] { return make_layer(config, asked); };
  KeptLayer kept =
      look_up(layers_, layer_name(config, asked), make) * number(config.train.micro_batch_size);
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
  const std::string name = base::text("{} {} {} {} {} {}",
                                      shape.pp,
                                      shape.vpp,
                                      shape.micro_batches,
                                      shape.group,
                                      shape.extra_warm_up,
                                      static_cast<int>(shape.order));
  return look_up(flights_, name, [&] {
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
  const std::string name = base::text("{} {} {} {} {} {} {} {} {}",
                                      layer_name(config, asked),
                                      derive::virtual_stages(small.model),
                                      small.train.micro_batch_size,
                                      small.train.global_batch_size,
                                      small.model.pipeline_model_parallel_size,
                                      config.comm_overlap.overlap_moe_expert_parallel_comm,
                                      config.comm_overlap.delay_wgrad_compute,
                                      config.model.expert_model_parallel_size,
                                      static_cast<int>(end));
  return look_up(counted_, name, [&] { return counted_extra(small, end, counter_); });
}

const std::vector<derive::Stage>& MemoryBook::stages(const Config& config) {
  const ModelConfig& model = config.model;
  const std::string name = base::text("{} {} {}",
                                      model.pipeline_model_parallel_size,
                                      derive::virtual_stages(model),
                                      model.pipeline_model_parallel_layout);
  return look_up(stages_, name, [&] { return derive::stages_of(model).all; });
}

const std::vector<derive::RankParameters>& MemoryBook::parameters(const Config& config) {
  const ModelConfig& model = config.model;
  const std::string name = base::text("{} {} {} {} {} {} {}",
                                      model.pipeline_model_parallel_size,
                                      derive::virtual_stages(model),
                                      model.pipeline_model_parallel_layout,
                                      model.tensor_model_parallel_size,
                                      model.expert_model_parallel_size,
                                      model.expert_shards(),
                                      static_cast<int>(derive::placement_of(config)));
  return look_up(parameters_, name, [&] { return derive::rank_parameters(config); });
}

double MemoryBook::dummy_gradients(const Config& config) {
  const ModelConfig& model = config.model;
  const std::string name =
      base::text("{} {}", model.tensor_model_parallel_size, model.expert_shards());
  return look_up(dummies_, name, [&] {
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
  const std::string name = base::text("{} {} {}",
                                      layer_name(config, {.layer = layer, .whole = whole}),
                                      config.train.micro_batch_size,
                                      joined_words(config.model.offload_modules));
  return look_up(offloadable_, name, [&] { return offloadable_parts(config, layer, whole); });
}

const OffloadedStages& MemoryBook::offloaded(const Config& config) {
  const ModelConfig& model = config.model;
  std::string name;
  if (model.fine_grained_activation_offloading) {
    name = base::text("{} {} {} {} {} {}",
                      layer_name(config, {.layer = model.num_layers - 1}),
                      config.train.micro_batch_size,
                      model.pipeline_model_parallel_size,
                      model.pipeline_model_parallel_layout,
                      derive::virtual_stages(model),
                      joined_words(model.offload_modules));
    if (model.recompute_granularity == config::RecomputeGranularity::Full) name += " full";
  }
  return look_up(offloaded_, name, [&] {
    if (name.empty()) return OffloadedStages();
    const auto make = [&](std::int64_t layer, Recomputed whole) {
      return offloadable(config, layer, whole);
    };
    const OffloadableLayers layers(model, stages(config), make);
    return offloaded_of_stages(layers, offloaded_parts(config, layers));
  });
}

}  // namespace weft::plan
