// Price of a step by simulation: layers node by node, pipeline turn by turn.
#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/derive/flops.h"
#include "weft/plan/price/layer_prices.h"
#include "weft/plan/price/pipeline_clock.h"
#include "weft/plan/price/price_parts.h"
#include "weft/plan/price/short_step.h"
#include "weft/schedule/plan.h"

namespace weft::plan {
namespace {

using base::number;
using config::Config;

constexpr double kMsOfSecond = 1e3;

// Merged layers of a stage, and the rest of its turns.
struct StageParts {
  std::int64_t travelling = 0;              // layers with a dispatch
  PlainTime layer, merged, round;           // mean of these layers
  PlainTime other_forward, other_backward;  // all other layers
};

class SchedulePricing {
 public:
  SchedulePricing(const Config& config,
                  const Hardware& hardware,
                  const Routing& routing,
                  const LayerMemory& memory)
      : config_(config),
        hardware_(hardware),
        layers_(config, hardware, routing, memory),
        at_end_(config, hardware) {
    micro_batches_ = std::max<std::int64_t>(1, plan::micro_batches_of(config));
    is_merged_ = config.comm_overlap.overlap_moe_expert_parallel_comm && micro_batches_ > 1;
    is_zero_bubble_ = derive::pipeline_schedule(config) == config::PipelineSchedule::ZeroBubble;
    for (const derive::Stage& stage : derive::stages_of(config.model).all) add_stage(stage);
  }

  Price price() {
    const PipelineTime time = run_pipeline(work());
    const RankClock& longest = time.longest();
    const auto rank = base::at(&longest - time.ranks.data());
    StepSeconds seconds{.work = longest.work,
                        .bubble = longest.idle,
                        .dp = data_parallel(rank),
                        .pp = longest.pp,
                        .optimizer = at_end_.optimizer()};
    ComputeMs compute = compute_[rank];
    for (double* part : {&compute.products, &compute.attention, &compute.memory}) {
      *part *= number(micro_batches_) * kMsOfSecond;
    }
    return compose_price(config_,
                         hardware_,
                         seconds,
                         compute,
                         derive::flops_per_token(config_.model));
  }

 private:
  static PlainTime forward_of(const PlainTime& both) {
    const double share = both.total() > 0 ? both.forward / both.total() : 0;
    PlainTime time = both * share;
    time.forward = both.forward;
    time.backward = 0;
    return time;
  }
  static PlainTime backward_of(const PlainTime& both) {
    PlainTime time = both;
    time += forward_of(both) * -1;
    return time;
  }

  void add_stage(const derive::Stage& stage) {
    const derive::Pipeline pipeline = derive::pipeline_of(config_);
    compute_.resize(base::at(pipeline.pp));
    ComputeMs& compute = compute_[base::at(pipeline.rank_of(static_cast<int>(parts_.size())))];
    StageParts parts;
    StageTime time;
    const auto add = [&](const LayerPrice& layer) {
      time.forward += forward_of(layer.plain);
      time.backward += backward_of(layer.plain);
      time.weights += is_zero_bubble_ ? layer.time.put_off() : layer.time.compute().w;
      compute.products += layer.time.products;
      compute.attention += layer.time.attention;
      compute.memory += layer.time.memory;
      if (is_merged_ && layer.time.dispatch > 0) {
        ++parts.travelling;
        parts.layer += layer.plain;
        parts.merged += layer.merged;
        parts.round += layer.round;
      } else {
        parts.other_forward += forward_of(layer.plain);
        parts.other_backward += backward_of(layer.plain);
      }
    };
    if (stage.embedding) add(layers_.embed());
    for (int i = 0; i < stage.layers; ++i) add(layers_.of(stage.first_layer + i, i));
    // Its rows travel too, without concurrent work.
    for (int i = 0; i < stage.mtp_layers; ++i) {
      LayerPrice mtp = layers_.mtp();
      mtp.time.dispatch = 0;
      add(mtp);
    }
    if (stage.loss) add(layers_.head());
    if (parts.travelling > 0) {
      const double share = 1 / number(parts.travelling);
      parts.layer = parts.layer * share;
      parts.merged = parts.merged * share;
      parts.round = parts.round * share;
    }
    parts_.push_back(parts);
    times_.push_back(time);
  }

  // Layers are merged in pairs; the rest of the longer turn runs alone.
  PlainTime merged(int forward_stage, int backward_stage) const {
    const StageParts& f = parts_[base::at(forward_stage)];
    const StageParts& b = parts_[base::at(backward_stage)];
    const std::int64_t pairs = std::min(f.travelling, b.travelling);
    PlainTime time = f.other_forward;
    time += b.other_backward;
    time += forward_of(f.layer) * number(f.travelling - pairs);
    time += backward_of(b.layer) * number(b.travelling - pairs);
    if (pairs == 0) return time;
    time += f.merged * (number(pairs) / 2);
    time += b.merged * (number(pairs) / 2);
    time += f.round;
    return time;
  }

  PipelineWork work() const {
    const grid::Layout layout = derive::layout_of(config_);
    const std::int64_t dp = layout.world / (layout.tp * layout.cp * layout.pp);
    PipelineWork work{.pipeline = derive::pipeline_of(config_),
                      .shapes = {},
                      .stages = times_,
                      .merged = {},
                      .send_seconds = layout.pp > 1 ? stage_send_seconds(config_, hardware_) : 0,
                      .sends_beside = derive::overlaps_p2p(config_)};
    for (int rank = 0; rank < layout.pp; ++rank) {
      work.shapes.push_back(schedule::pipeline_shape(config_, dp, rank));
      work.shapes.back().micro_batches = static_cast<int>(micro_batches_);
    }
    if (is_merged_) work.merged = [this](int f, int b) { return merged(f, b); };
    return work;
  }

  // Covered by the last backward and the first forward of the rank.
  double data_parallel(std::size_t rank) const {
    double forward = 0, backward = 0;
    const derive::Pipeline pipeline = derive::pipeline_of(config_);
    for (const int stage : pipeline.stages_of(static_cast<int>(rank))) {
      forward += times_[base::at(stage)].forward.total();
      backward += times_[base::at(stage)].backward.total();
    }
    return at_end_.exposed(number(micro_batches_), forward, backward);
  }

  const Config& config_;
  const Hardware& hardware_;
  LayerPrices layers_;
  DataParallelPrice at_end_;
  std::int64_t micro_batches_ = 1;
  bool is_merged_ = false, is_zero_bubble_ = false;
  std::vector<StageParts> parts_;   // by stage
  std::vector<StageTime> times_;    // by stage
  std::vector<ComputeMs> compute_;  // by rank, seconds per micro-batch
};

}  // namespace

Price price_step(const Config& config,
                 const Hardware& hardware,
                 const Routing& routing,
                 const LayerMemory& memory) {
  return SchedulePricing(config, hardware, routing, memory).price();
}

}  // namespace weft::plan
