#include "weft/measure/memory_estimate.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/grid/grid.h"
#include "weft/plan/price.h"
#include "weft/plan/short_step.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

train::PredictedMemory stage_of(const plan::MemoryPrice& price, int rank) {
  train::PredictedMemory stage{.rank = rank};
  const auto set = [&](tensor::Tag tag, double bytes) {
    const auto whole = static_cast<std::size_t>(bytes);
    stage.at_peak.bytes[static_cast<std::size_t>(tag)] = whole;
    stage.peak_total_bytes += whole;
  };
  set(tensor::Tag::Weights, price.weights);
  set(tensor::Tag::Gradients, price.gradients);
  set(tensor::Tag::Optimizer, price.optimizer);
  set(tensor::Tag::Activations, price.activations + price.logits);
  set(tensor::Tag::Communication, price.buffers);
  stage.peak_bytes = stage.at_peak.bytes;
  stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)] =
      static_cast<std::size_t>(price.host);
  return stage;
}

}  // namespace

MemoryForecast estimate_memory(const config::Config& asked,
                               const plan::Hardware& hardware,
                               Priced priced) {
  const rules::Verdict verdict = rules::judge(rules::without_missing(asked));
  const config::Config& config = verdict.config;
  MemoryForecast estimate{.micro_batches = plan::micro_batches_of(config),
                          .run = plan::micro_batches_of(config),
                          .layout = derive::layout_of(config)};
  if (!verdict.legal()) return estimate;
  const std::vector<int> ranks = grid::Grid(estimate.layout).group_of(grid::GroupKind::Pp, 0);
  plan::MemoryBook book;
  for (const plan::MemoryPrice& price : plan::price_ranks(config, hardware, {}, book)) {
    estimate.stages.push_back(stage_of(price, ranks[base::at(price.pp_rank)]));
  }
  if (priced == Priced::Yes) {
    estimate.step_seconds = plan::price_step(config, hardware).step_ms / 1e3;
  }
  return estimate;
}

Forecaster estimates_beside(const config::Config& asked,
                            const MemoryForecast& now,
                            const plan::Hardware& hardware) {
  std::vector<double> moved;
  const MemoryForecast estimate = estimate_memory(asked, hardware, Priced::No);
  for (std::size_t i = 0; i < now.stages.size(); ++i) {
    moved.push_back(static_cast<double>(now.stages[i].peak_total_bytes) -
                    static_cast<double>(estimate.stages[i].peak_total_bytes));
  }
  return [moved, hardware](const config::Config& other, Priced priced) {
    MemoryForecast then = estimate_memory(other, hardware, priced);
    for (std::size_t i = 0; i < then.stages.size(); ++i) {
      std::size_t& bytes = then.stages[i].peak_total_bytes;
      bytes = static_cast<std::size_t>(std::max(0.0, static_cast<double>(bytes) + moved[i]));
    }
    return then;
  };
}

}  // namespace weft::measure
