#include "weft/plan/price/price.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/plan/hardware/wire_time.h"
#include "weft/plan/price/bubble_formula.h"
#include "weft/plan/price/layer_prices.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/price_parts.h"
#include "weft/plan/price/short_step.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;

constexpr double kMs = 1e3;

// Times of one pipeline rank for a micro-batch.
struct RankTime {
  PlainTime plain, merged;
  ComputeMs compute;   // in seconds; converted to ms at the end
  double put_off = 0;  // weight gradients that ZB-H1 delays
};

class StepPricing {
 public:
  StepPricing(const Config& config,
              const Hardware& hardware,
              const Routing& routing,
              const SieveBooks& books)
      : config_(config),
        hardware_(hardware),
        layers_(config, hardware, routing, &books.layers),
        stages_(books.runs.stages(config)),
        at_end_(config, hardware, books.runs.parameters(config)),
        layout_(derive::layout_of(config)),
        pipeline_(derive::pipeline_of(config)),
        flops_per_token_(books.runs.flops_per_token(config)) {
    micro_batches_ = number(std::max<std::int64_t>(1, plan::micro_batches_of(config)));
    is_merged_ = config.comm_overlap.overlap_moe_expert_parallel_comm && micro_batches_ > 1;
  }

  Price price() {
    const std::vector<RankTime> ranks = rank_times();
    const RankTime* longest = &ranks.front();
    for (const RankTime& rank : ranks) {
      if (steady(rank).total() > steady(*longest).total()) longest = &rank;
    }
    return compose(*longest, bubble_seconds(ranks, *longest));
  }

 private:
  const PlainTime& steady(const RankTime& rank) const {
    return is_merged_ ? rank.merged : rank.plain;
  }

  std::vector<RankTime> rank_times() {
    std::vector<RankTime> ranks(base::at(layout_.pp));
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const derive::Stage& stage = stages_[s];
      RankTime& rank = ranks[base::at(pipeline_.rank_of(static_cast<int>(s)))];
      const PlainTime before = rank.plain;
      if (stage.embedding) add_layer(rank, layers_.embed());
      for (int i = 0; i < stage.layers; ++i) add_layer(rank, layers_.of(stage.first_layer + i, i));
      for (int i = 0; i < stage.mtp_layers; ++i) add_layer(rank, layers_.mtp());
      if (stage.loss) add_layer(rank, layers_.head());
      of_stage_.push_back({.forward = rank.plain.forward - before.forward,
                           .backward = rank.plain.backward - before.backward});
    }
    return ranks;
  }

  void add_layer(RankTime& rank, const LayerPrice& layer) {
    rank.plain += layer.plain;
    if (is_merged_) rank.merged += layer.merged;
    rank.compute.products += layer.time.products;
    rank.compute.attention += layer.time.attention;
    rank.compute.memory += layer.time.memory;
    rank.put_off += layer.time.put_off();
  }

  // Exposed sends and receives: in a plain pipeline one each way per micro-batch.
  double point_to_point() const {
    if (layout_.pp == 1) return 0;
    const double one = stage_send_seconds(config_, hardware_);
    if (derive::overlaps_p2p(config_)) return 2 * one * number(layout_.pp - 1);
    return 2 * one * (micro_batches_ + number(layout_.pp - 1));
  }

  // Work over all micro-batches. Merged: all but one have a partner.
  PlainTime work_of(const RankTime& rank) const {
    const double alone = is_merged_ ? 1 : micro_batches_;
    PlainTime work = rank.plain * alone;
    work += steady(rank) * (micro_batches_ - alone);
    return work;
  }

  double bubble_seconds(const std::vector<RankTime>& ranks, const RankTime& longest) const {
    if (layout_.pp == 1) return 0;
    PipelineLoad load{.pipeline = pipeline_,
                      .micro_batches = micro_batches_,
                      .stages = of_stage_,
                      .turns = {},
                      .work = {}};
    double mean = 0;
    for (const RankTime& rank : ranks) {
      load.turns.push_back(steady(rank).total());
      load.work.push_back(work_of(rank).total());
      mean += load.turns.back() / number(layout_.pp);
    }
    const double turns = number(layout_.pp - 1) / number(pipeline_.vpp);
    // Merged turns with one chunk per rank: a forward waits for its merged backward. That waits for
    // the next rank's backward, and so for that rank's forward. Neighbours alternate.
    if (is_merged_ && pipeline_.vpp == 1) {
      return turns * mean + std::max(0.0, micro_batches_ - number(layout_.pp)) * mean;
    }
    const double whole = bubble_by_formula(load);
    if (derive::pipeline_schedule(config_) == config::PipelineSchedule::ZeroBubble) {
      return std::max(0.0, whole - turns * 2 * longest.put_off);
    }
    return whole;
  }

  Price compose(const RankTime& rank, double bubble) const {
    const PlainTime work = work_of(rank);
    const StepSeconds seconds{
        .work = work,
        .bubble = bubble,
        .dp = at_end_.exposed(micro_batches_, rank.plain.forward, rank.plain.backward),
        .pp = point_to_point(),
        .optimizer = at_end_.optimizer()};
    ComputeMs compute = rank.compute;
    for (double* part : {&compute.products, &compute.attention, &compute.memory}) {
      *part *= micro_batches_ * kMs;
    }
    return compose_price(config_, hardware_, seconds, compute, flops_per_token_);
  }

  const Config& config_;
  const Hardware& hardware_;
  LayerPrices layers_;
  const std::vector<derive::Stage>& stages_;
  std::vector<StageSeconds> of_stage_;  // by stage
  DataParallelPrice at_end_;
  grid::Layout layout_;
  derive::Pipeline pipeline_;
  double flops_per_token_ = 0;
  double micro_batches_ = 1;
  bool is_merged_ = false;
};

Wall wall_of(const Price& price) {
  return trace::dominant_wall({.communication = price.exposed.communication(),
                               .host = price.exposed.host,
                               .update = price.exposed.update,
                               .bubble = price.bubble * price.step_ms},
                              price.step_ms);
}

}  // namespace

double stage_send_seconds(const Config& config, const Hardware& hardware) {
  const grid::Layout layout = derive::layout_of(config);
  const Workload work = workload_of(config);
  const double bytes = work.own_tokens * number(config.model.hidden_size) * work.element;
  return send_seconds(bytes, number(layout.world / layout.pp), hardware);
}

Price compose_price(const Config& config,
                    const Hardware& hardware,
                    const StepSeconds& seconds,
                    const ComputeMs& compute,
                    double flops_per_token) {
  const double step = seconds.total(), world = number(derive::layout_of(config).world);
  const double tokens = number(config.train.global_batch_size * config.model.seq_length);
  Price price;
  price.step_ms = step * kMs;
  price.tokens_per_second_per_gpu = tokens / step / world;
  price.tflops_per_gpu = price.tokens_per_second_per_gpu * flops_per_token * 1e-12;
  price.mfu = price.tflops_per_gpu * 1e12 / hardware.peak(number_of(config.model));
  price.bubble = seconds.bubble / step;
  price.exposed = {.ep = seconds.work.ep * kMs,
                   .dp = seconds.dp * kMs,
                   .tp = seconds.work.tp * kMs,
                   .pp = seconds.pp * kMs,
                   .cp = seconds.work.cp * kMs,
                   .copy = seconds.work.copy * kMs,
                   .host = seconds.work.host * kMs,
                   .update = seconds.optimizer.waiting * kMs};
  price.compute = compute;
  price.compute.optimizer = seconds.optimizer.device * kMs;
  price.wall = wall_of(price);
  return price;
}

Price sieve_step(const Config& config, const Hardware& hardware, const Routing& routing) {
  MemoryBook runs;
  FormulaLayers layers;
  return sieve_step(config, hardware, routing, {.runs = runs, .layers = layers});
}

Price sieve_step(const Config& config,
                 const Hardware& hardware,
                 const Routing& routing,
                 const SieveBooks& books) {
  return StepPricing(config, hardware, routing, books).price();
}

Price price_run(const Config& config, const Hardware& hardware, const Routing& routing) {
  MemoryBook book;
  return price_run(config, hardware, routing, book);
}

Price price_run(const Config& config,
                const Hardware& hardware,
                const Routing& routing,
                MemoryBook& book) {
  Price price = price_step(config, hardware, routing);
  price.memory = price_memory(config, hardware, routing, book);
  if (!price.memory.fits()) price.wall = Wall::Memory;
  return price;
}

}  // namespace weft::plan
