#include "weft/plan/memory_book.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/kept_formula.h"
#include "weft/plan/layers_alone.h"
#include "weft/plan/nominal_costs.h"
#include "weft/plan/short_step.h"
#include "weft/plan/workload.h"
#include "weft/rules/missing.h"
#include "weft/schedule/memory.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;

// Layers of a small run: of the last, nothing of what the head or the embedding keeps is counted.
constexpr std::int64_t kAlone = 3;

template <typename Words>
std::string joined_words(const Words& words) {
  std::string all;
  for (const auto& word : words) all += std::string(config::word(word)) + ",";
  return all;
}

// All that a layer of one sequence a micro-batch depends on, of what a planner turns.
std::string layer_name(const Config& config,
                       std::int64_t layer,
                       Recomputed whole,
                       double imbalance) {
  const ModelConfig& model = config.model;
  const bool is_moe = model.is_moe_layer(layer);
  std::string name = base::text("{} {} {} {} {} {} {}",
                                static_cast<int>(derive::attention_of(model, layer)),
                                model.tensor_model_parallel_size,
                                model.context_parallel_size,
                                static_cast<int>(number_of(model)),
                                model.sequence_parallel,
                                config.comm_overlap.tp_comm_overlap,
                                static_cast<int>(whole));
  if (model.recompute_granularity == config::RecomputeGranularity::Selective) {
    name += " " + (model.recompute_modules ? joined_words(*model.recompute_modules) : "core");
  }
  if (model.fine_grained_activation_offloading)
    name += " off " + joined_words(model.offload_modules);
  if (!is_moe) return name + " dense";
  // How often a token comes to a rank depends on the number of ranks.
  const bool is_flex = model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  const std::int64_t ep = model.expert_model_parallel_size;
  return name + base::text(" moe {} {} {} {} {}",
                           model.expert_shards(),
                           is_flex ? ep : std::min<std::int64_t>(ep, 2),
                           static_cast<int>(model.moe_token_dispatcher_type),
                           config.comm_overlap.moe_token_slices,
                           imbalance);
}

// A head of next to nothing.
Config without_vocabulary(Config alone) {
  ModelConfig& model = alone.model;
  model.vocab_size = model.tensor_model_parallel_size;
  model.should_pad_vocab = false;
  return alone;
}

KeptLayer kept_by_pieces(const Config& alone, double imbalance) {
  const grid::Grid grid(derive::layout_of(alone));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(alone, grid);
  CHECK(plans.size() == 1, "{} pipeline ranks", plans.size());
  const schedule::RankPlan& plan = plans.front();
  schedule::Load load = expected_load(alone, plan.anatomy.flow);
  load.rows = static_cast<std::int64_t>(number(load.rows) * imbalance);
  const std::vector<std::int64_t> kept =
      schedule::kept_after_each(plan.training, plan.anatomy, [&](const auto&) { return load; });
  std::vector<std::int64_t> after(base::at(kAlone));  // the forward of each layer
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const schedule::Node& node = plan.training.entries[i].node;
    if (node.direction != schedule::Direction::F || node.layer == schedule::kNone) continue;
    after[base::at(node.layer)] = kept[i];
  }
  const std::int64_t all = after.back(), most = std::ranges::max(kept);
  return {.kept = number(all - after[after.size() - 2]),
          .again = number(std::max<std::int64_t>(0, most - all))};
}

// What the parts that no schedule has make of it.
double share_by_formula(const Config& config, const Config& alone, std::int64_t layer) {
  const Config plain = rules::without_missing(config);
  if (number_of(config.model) == Number::Bf16 && !config.model.moe_paged_stash &&
      derive::attention_of(config.model, layer) == derive::attention_of(alone.model, 0)) {
    return 1;
  }
  return kept_by_formula(config, workload_of(config), layer) /
         kept_by_formula(plain, workload_of(plain), layer);
}

// In the backward of a layer: the gradients of rows on both sides of its experts.
double row_gradients(const Config& alone, double imbalance) {
  if (alone.model.experts() == 0) return 0;
  return 2 * 2 * workload_of(alone, imbalance).rows * number(alone.model.hidden_size);
}

KeptLayer make_layer(const Config& config, std::int64_t layer, Recomputed whole, double imbalance) {
  Config alone = without_vocabulary(layers_alone(config, layer, whole));
  alone.model.num_layers = kAlone;
  alone.train.micro_batch_size = 1;
  alone = with_micro_batches(std::move(alone), 1);
  KeptLayer kept = kept_by_pieces(alone, imbalance);
  kept.again += row_gradients(alone, imbalance);
  const double share = whole == Recomputed::Yes ? 1 : share_by_formula(config, alone, layer);
  return {.kept = kept.kept * share, .again = kept.again * share};
}

bool has_as_much(const Flight& one, const Flight& other) {
  return std::ranges::equal(one, other, [](int a, int b) { return a >= b; });
}

class FlightLog {
 public:
  explicit FlightLog(const schedule::PipelineShape& shape)
      : rounds_(schedule::training_rounds(shape)),
        merges_(shape.extra_warm_up > 0),
        now_(base::at(shape.vpp)) {
    for (const auto& round : rounds_) {
      for (const schedule::Turn& turn : round) {
        if (turn.direction == schedule::Direction::W)
          put_off_.insert({turn.chunk, turn.micro_batch});
      }
    }
  }

  std::vector<Flight> read() {
    for (const auto& round : rounds_) {
      for (const schedule::Turn& turn : round) {
        take(turn);
        // What is merged gives back layer by layer what it takes.
        if (!merges_) note();
      }
      note();
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

  void note() {
    const auto covers = [&](const Flight& one) { return has_as_much(one, now_); };
    if (std::ranges::any_of(all_, covers)) return;
    std::erase_if(all_, [&](const Flight& one) { return has_as_much(now_, one); });
    all_.push_back(now_);
  }

  const std::vector<std::vector<schedule::Turn>> rounds_;
  const bool merges_;
  std::set<std::pair<int, int>> put_off_;  // chunks and micro-batches whose W have a turn
  Flight now_;
  std::vector<Flight> all_;
};

}  // namespace

KeptLayer MemoryBook::layer(const Config& config,
                            std::int64_t layer,
                            Recomputed whole,
                            double imbalance) {
  const std::string name = layer_name(config, layer, whole, imbalance);
  const auto of_batch = [&](KeptLayer kept) {
    const double sequences = number(config.train.micro_batch_size);
    return KeptLayer{.kept = kept.kept * sequences, .again = kept.again * sequences};
  };
  {
    const std::lock_guard lock(mutex_);
    const auto known = layers_.find(name);
    if (known != layers_.end()) return of_batch(known->second);
  }
  const KeptLayer kept = make_layer(config, layer, whole, imbalance);
  const std::lock_guard lock(mutex_);
  return of_batch(layers_.emplace(name, kept).first->second);
}

std::vector<std::vector<Flight>> MemoryBook::flights(const Config& config) {
  const grid::Layout layout = derive::layout_of(config);
  const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
  const Config shorter = with_micro_batches(
      config,
      fewest_micro_batches(config.model, std::max<std::int64_t>(1, micro_batches_of(config))));
  schedule::PipelineShape shape = schedule::pipeline_shape(shorter, dp, 0);
  const std::string name = base::text("{} {} {} {} {} {}",
                                      shape.pp,
                                      shape.vpp,
                                      shape.micro_batches,
                                      shape.group,
                                      shape.extra_warm_up,
                                      static_cast<int>(shape.order));
  {
    const std::lock_guard lock(mutex_);
    const auto known = flights_.find(name);
    if (known != flights_.end()) return known->second;
  }
  std::vector<std::vector<Flight>> all;
  for (shape.pp_rank = 0; shape.pp_rank < shape.pp; ++shape.pp_rank) {
    all.push_back(FlightLog(shape).read());
  }
  const std::lock_guard lock(mutex_);
  return flights_.emplace(name, std::move(all)).first->second;
}

}  // namespace weft::plan
