#include "weft/plan/price.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/layer_kind.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/layer_time.h"
#include "weft/plan/wire_time.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;
using config::ModelConfig;

constexpr double kMs = 1e3;
// AdamW reads and writes a master weight and two moments in fp32, reads the gradient and writes the
// weight: bytes of a parameter of the rank's shard.
constexpr double kOptimizerBytes = 30;
// Of every gradient of the rank: set to zero, and read for the norm.
constexpr double kGradientPasses = 2;
// Share of the time that collectives of data-parallel ranks need in which compute beside them
// covers them; the rest is their beginning and their end.
constexpr double kDataCover = 0.9;
// A fully sharded run gathers the weights twice and scatters gradients once in each micro-batch.
constexpr double kShardedGathers = 3;

// What one pipeline rank does with a micro-batch.
struct RankTime {
  PlainTime plain, merged;
  ComputeMs compute;  // seconds, not ms, until the end
  double weight_gradients = 0;
};

void add(PlainTime& to, const PlainTime& other) {
  to.forward += other.forward;
  to.backward += other.backward;
  to.ep += other.ep;
  to.tp += other.tp;
  to.cp += other.cp;
  to.host += other.host;
}

class StepPricing {
 public:
  StepPricing(const Config& config, const Hardware& hardware, const Routing& routing)
      : config_(config),
        model_(config.model),
        hardware_(hardware),
        work_(workload_of(config, routing)),
        layout_(derive::layout_of(config)),
        pipeline_(derive::pipeline_of(config)) {
    dp_ = layout_.world / (layout_.tp * layout_.cp * layout_.pp);
    micro_batches_ = number(std::max<std::int64_t>(1, derive::micro_batches(config.train, dp_)));
    is_merged_ = config.comm_overlap.overlap_moe_expert_parallel_comm && micro_batches_ > 1;
  }

  Price price() {
    const std::vector<RankTime> ranks = rank_times();
    const RankTime* longest = &ranks.front();
    double mean = 0;
    for (const RankTime& rank : ranks) {
      if (steady(rank).total() > steady(*longest).total()) longest = &rank;
      mean += steady(rank).total() / number(std::ssize(ranks));
    }
    return compose(*longest, mean);
  }

 private:
  const PlainTime& steady(const RankTime& rank) const {
    return is_merged_ ? rank.merged : rank.plain;
  }

  std::vector<RankTime> rank_times() {
    std::vector<RankTime> ranks(base::at(layout_.pp));
    const std::vector<derive::Stage> stages = derive::stages_of(model_).all;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const derive::Stage& stage = stages[s];
      RankTime& rank = ranks[base::at(pipeline_.rank_of(static_cast<int>(s)))];
      if (stage.embedding) add_layer(rank, embed_time(config_, work_, hardware_));
      for (int i = 0; i < stage.layers; ++i) {
        add_layer(rank, time_of_layer(stage.first_layer + i, i));
      }
      for (int i = 0; i < stage.mtp_layers; ++i) {
        add_layer(rank, mtp_time(config_, work_, hardware_));
      }
      if (stage.loss) add_layer(rank, head_time(config_, work_, hardware_));
    }
    return ranks;
  }

  void add_layer(RankTime& rank, const LayerTime& layer) {
    add(rank.plain, plain_time(config_, layer));
    if (is_merged_) add(rank.merged, merged_time(config_, layer, hardware_));
    rank.compute.products += layer.products;
    rank.compute.attention += layer.attention;
    rank.compute.memory += layer.memory;
    rank.weight_gradients += layer.compute().w;
  }

  // Layers of one kind take as long: each kind is priced once.
  const LayerTime& time_of_layer(std::int64_t layer, int place_in_stage) {
    const Recomputed whole = is_recomputed(place_in_stage) ? Recomputed::Yes : Recomputed::No;
    const auto kind = std::tuple(derive::attention_of(model_, layer),
                                 derive::is_windowed(model_, layer),
                                 model_.is_moe_layer(layer),
                                 whole);
    const auto found = kinds_.find(kind);
    if (found != kinds_.end()) return found->second;
    return kinds_.emplace(kind, layer_time(config_, work_, hardware_, layer, whole)).first->second;
  }

  bool is_recomputed(int place_in_stage) const {
    if (model_.recompute_granularity != config::RecomputeGranularity::Full) return false;
    if (model_.recompute_method != config::RecomputeMethod::Block) return true;
    return place_in_stage < model_.recompute_num_layers.value_or(1);
  }

  // Of the rank with most of them.
  double parameters_of_rank(std::int64_t derive::RankParameters::*kind) const {
    std::int64_t most = 0;
    for (const derive::RankParameters& rank : derive::rank_parameters(config_)) {
      most = std::max(most, rank.*kind);
    }
    return number(most);
  }

  // Reductions of gradients, or gathers of weights, of the rank with most parameters.
  double data_parallel_seconds(double bytes_of_parameter) const {
    double seconds = 0;
    for (const Replicated& each : replicated()) {
      seconds += gather_seconds(each.parameters * bytes_of_parameter,
                                group_of(each.replicas, each.stride, hardware_),
                                hardware_);
    }
    return seconds;
  }

  // Parameters of a rank, and the ranks that have the same ones.
  struct Replicated {
    double parameters = 0, replicas = 1, stride = 1;
  };
  std::array<Replicated, 2> replicated() const {
    const std::int64_t stage = layout_.world / layout_.pp;
    return {{{.parameters = parameters_of_rank(&derive::RankParameters::dense),
              .replicas = number(stage / layout_.tp),
              .stride = work_.tp},
             {.parameters = parameters_of_rank(&derive::RankParameters::experts),
              .replicas = number(stage / (layout_.ep * layout_.etp)),
              .stride = work_.ep * work_.etp}}};
  }

  // Of an exchange that runs under compute.
  static double uncovered(double seconds, double cover) {
    return std::max((1 - kDataCover) * seconds, seconds - cover);
  }

  bool is_distributed() const {
    return config_.ddp.use_distributed_optimizer || config_.optimizer.use_distributed_optimizer;
  }

  double data_parallel_exposed(const RankTime& rank) const {
    const double gradient = config_.ddp.grad_reduce_in_fp32 ? 4 : 2;
    const double weight = config_.ddp.fp8_param_gather ? 1 : 2;
    if (config_.ddp.use_megatron_fsdp) {
      const double each = kShardedGathers * data_parallel_seconds(weight);
      return micro_batches_ * uncovered(each, rank.plain.total());
    }
    const bool reduces_early = config_.comm_overlap.overlap_grad_reduce.value_or(
        is_distributed() || config_.ddp.overlap_grad_reduce);
    const bool gathers_late = config_.comm_overlap.overlap_param_gather.value_or(
        is_distributed() || config_.ddp.overlap_param_gather);
    const double reduced = data_parallel_seconds(gradient) * (is_distributed() ? 1 : 2);
    const double gathered = is_distributed() ? data_parallel_seconds(weight) : 0;
    return (reduces_early ? uncovered(reduced, rank.plain.backward) : reduced) +
           (gathers_late ? uncovered(gathered, rank.plain.forward) : gathered);
  }

  double optimizer_seconds() const {
    double seconds = 0;
    const bool fully = config_.ddp.use_megatron_fsdp;
    for (const Replicated& each : replicated()) {
      const double mine = each.parameters / (is_distributed() || fully ? each.replicas : 1);
      const double kept = fully ? mine : each.parameters;
      seconds += (mine * kOptimizerBytes + kept * kGradientPasses * 4) / hardware_.memory_rate();
    }
    return seconds;
  }

  // Sends and receives that nothing hides: of a plain pipeline, one each way for a micro-batch.
  double point_to_point() const {
    if (layout_.pp == 1) return 0;
    const double bytes = work_.own_tokens * number(model_.hidden_size) * 2;
    const double one = send_seconds(bytes, number(layout_.world / layout_.pp), hardware_);
    if (derive::overlaps_p2p(config_)) return 2 * one * number(layout_.pp - 1);
    return 2 * one * (micro_batches_ + number(layout_.pp - 1));
  }

  // The pipeline fills and drains; a rank has vpp turns of a micro-batch to do meanwhile.
  double bubble_seconds(const RankTime& rank, double mean) const {
    if (layout_.pp == 1) return 0;
    const double turns = number(layout_.pp - 1) / number(derive::virtual_stages(model_));
    const double whole = turns * mean;
    if (derive::pipeline_schedule(config_) == config::PipelineSchedule::ZeroBubble) {
      return std::max(0.0, whole - turns * 2 * rank.weight_gradients);
    }
    return whole;
  }

  Price compose(const RankTime& rank, double mean) const {
    const PlainTime& each = steady(rank);
    // Merged, all micro-batches but one have a partner.
    const double alone = is_merged_ ? 1 : micro_batches_;
    const double paired = micro_batches_ - alone;
    const double bubble = bubble_seconds(rank, mean);
    const double dp = data_parallel_exposed(rank);
    const double pp = point_to_point();
    const double optimizer = optimizer_seconds();
    const double step =
        alone * rank.plain.total() + paired * each.total() + bubble + dp + pp + optimizer;
    const auto sum = [&](double PlainTime::*part) {
      return (alone * rank.plain.*part + paired * each.*part) * kMs;
    };
    Price price;
    price.step_ms = step * kMs;
    const double tokens = number(config_.train.global_batch_size * model_.seq_length);
    price.tokens_per_second_per_gpu = tokens / step / number(layout_.world);
    price.tflops_per_gpu =
        price.tokens_per_second_per_gpu * derive::flops_per_token(model_) * 1e-12;
    price.mfu = price.tflops_per_gpu * 1e12 / hardware_.peak(work_.number);
    price.bubble = bubble / step;
    price.exposed = {.ep = sum(&PlainTime::ep),
                     .dp = dp * kMs,
                     .tp = sum(&PlainTime::tp),
                     .pp = pp * kMs,
                     .cp = sum(&PlainTime::cp),
                     .host = sum(&PlainTime::host)};
    price.compute = {.products = rank.compute.products * micro_batches_ * kMs,
                     .attention = rank.compute.attention * micro_batches_ * kMs,
                     .memory = rank.compute.memory * micro_batches_ * kMs,
                     .optimizer = optimizer * kMs};
    return price;
  }

  using Kind = std::tuple<derive::AttentionKind, bool, bool, Recomputed>;

  const Config& config_;
  const ModelConfig& model_;
  const Hardware& hardware_;
  Workload work_;
  grid::Layout layout_;
  derive::Pipeline pipeline_;
  std::int64_t dp_ = 1;
  double micro_batches_ = 1;
  bool is_merged_ = false;
  std::map<Kind, LayerTime> kinds_;
};

// Compute is the wall where all that is lost besides it is less than a tenth of the step.
Wall wall_of(const Price& price) {
  constexpr double kSmall = 0.1;
  const double bubble = price.bubble * price.step_ms;
  const double communication = price.exposed.communication(), host = price.exposed.host;
  const double most = std::max({bubble, communication, host});
  if (most < kSmall * price.step_ms) return Wall::Compute;
  if (most == communication) return Wall::Communication;
  return most == host ? Wall::Host : Wall::Bubble;
}

}  // namespace

std::string_view word(Wall wall) {
  switch (wall) {
    case Wall::Compute:
      return "compute";
    case Wall::Communication:
      return "communication";
    case Wall::Host:
      return "host";
    case Wall::Bubble:
      return "bubble";
    case Wall::Memory:
      return "memory";
  }
  return "";
}

Price price_step(const Config& config, const Hardware& hardware, const Routing& routing) {
  Price price = StepPricing(config, hardware, routing).price();
  price.wall = wall_of(price);
  return price;
}

Price price_run(const Config& config, const Hardware& hardware, const Routing& routing) {
  Price price = price_step(config, hardware, routing);
  price.memory = price_memory(config, hardware, routing);
  if (!price.memory.fits()) price.wall = Wall::Memory;
  return price;
}

}  // namespace weft::plan
