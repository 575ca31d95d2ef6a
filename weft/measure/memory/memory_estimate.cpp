#include "weft/measure/memory/memory_estimate.h"

#include <algorithm>
#include <memory>

#include "weft/base/casts.h"
#include "weft/derive/derived.h"
#include "weft/grid/grid.h"
#include "weft/measure/bench/narrow_formats.h"
#include "weft/measure/runs/counted_step.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/short_step.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

// Largest excess of a dry step over the close estimate.
constexpr double kNear = 0.02;

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

// Legal run as estimated: without missing parts.
struct Estimated {
  rules::Verdict verdict;
  MemoryForecast forecast;
};

Estimated begin_estimate(const config::Config& asked) {
  Estimated run{.verdict = rules::judge(rules::without_missing(asked)), .forecast = {}};
  const config::Config& config = run.verdict.config;
  run.forecast.micro_batches = run.forecast.run = plan::micro_batches_of(config);
  run.forecast.layout = derive::layout_of(config);
  return run;
}

void add_stages(const std::vector<plan::MemoryPrice>& prices, MemoryForecast& estimate) {
  const std::vector<int> ranks = grid::Grid(estimate.layout).group_of(grid::GroupKind::Pp, 0);
  for (const plan::MemoryPrice& price : prices) {
    estimate.stages.push_back(stage_of(price, ranks[base::at(price.pp_rank)]));
  }
}

MemoryForecast estimate_by(plan::MemoryBook& book,
                           const config::Config& asked,
                           const plan::Hardware& hardware,
                           Priced priced) {
  Estimated run = begin_estimate(asked);
  if (!run.verdict.legal()) return run.forecast;
  const config::Config& config = run.verdict.config;
  add_stages(plan::price_ranks(config, hardware, {}, book), run.forecast);
  if (priced == Priced::Yes) {
    run.forecast.step_seconds = plan::price_step(config, hardware).step_ms / 1e3;
  }
  return run.forecast;
}

std::size_t& host_bytes(train::PredictedMemory& stage) {
  return stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)];
}

std::size_t moved(std::size_t bytes, std::int64_t by) {
  return base::at(std::max<std::int64_t>(0, static_cast<std::int64_t>(bytes) + by));
}

std::int64_t difference(std::size_t counted, std::size_t estimated) {
  return static_cast<std::int64_t>(counted) - static_cast<std::int64_t>(estimated);
}

}  // namespace

MemoryForecast estimate_memory(const config::Config& asked,
                               const plan::Hardware& hardware,
                               Priced priced) {
  plan::MemoryBook book;
  return estimate_by(book, asked, hardware, priced);
}

MemoryForecast estimate_closely(const config::Config& asked, const plan::Hardware& hardware) {
  Estimated run = begin_estimate(asked);
  run.forecast.left_out = left_out_of(asked);
  if (!run.verdict.legal()) return run.forecast;
  const config::Config& config = run.verdict.config;
  plan::MemoryBook book(count_step), formula;
  std::vector<plan::MemoryPrice> prices = plan::price_ranks(config, hardware, {}, book);
  const config::Config narrow = with_formats_of(asked, config);
  if (plan::number_of(narrow.model) != plan::number_of(config.model)) {
    const auto wide_ranks = plan::price_ranks(config, hardware, {}, formula);
    const auto narrow_ranks = plan::price_ranks(narrow, hardware, {}, formula);
    for (std::size_t i = 0; i < prices.size(); ++i) {
      const double less = wide_ranks[i].activations - narrow_ranks[i].activations;
      prices[i].activations -= std::clamp(less, 0.0, prices[i].activations);
    }
  }
  add_stages(prices, run.forecast);
  run.forecast.snapshots = snapshots_of(asked);
  for (train::PredictedMemory& stage : run.forecast.stages) {
    if (run.forecast.snapshots.empty()) break;
    stage.snapshot_bytes = run.forecast.snapshots[base::at(stage.rank)];
  }
  return run.forecast;
}

MemoryForecast count_largest(const config::Config& asked, const plan::Hardware& hardware) {
  MemoryForecast forecast = estimate_closely(asked, hardware);
  std::vector<bool> counted(forecast.stages.size());
  const auto most_of = [&](std::size_t i) {
    const double bytes = static_cast<double>(forecast.stages[i].peak_total_bytes);
    return counted[i] ? bytes : bytes * (1 + kNear);
  };
  while (forecast.is_predicted()) {
    std::size_t largest = 0;
    for (std::size_t i = 1; i < counted.size(); ++i) {
      if (most_of(i) > most_of(largest)) largest = i;
    }
    if (counted[largest]) break;
    train::PredictedMemory& stage = forecast.stages[largest];
    const std::vector<train::PredictedMemory> one = count_ranks(asked, {static_cast<int>(largest)});
    if (one.empty()) return forecast_memory(asked, Priced::No);  // has the reason
    const std::size_t snapshot_bytes = stage.snapshot_bytes;
    stage = one.front();
    stage.snapshot_bytes = snapshot_bytes;
    counted[largest] = true;
  }
  return forecast.is_predicted() ? forecast : forecast_memory(asked, Priced::No);
}

Forecaster estimates_beside(const config::Config& asked,
                            const MemoryForecast& now,
                            const plan::Hardware& hardware) {
  const auto book = std::make_shared<plan::MemoryBook>();
  MemoryForecast estimate = estimate_by(*book, asked, hardware, Priced::No);
  std::vector<std::int64_t> on_device, on_host;
  for (std::size_t i = 0; i < std::min(now.stages.size(), estimate.stages.size()); ++i) {
    train::PredictedMemory counted = now.stages[i];
    on_device.push_back(difference(counted.peak_total_bytes, estimate.stages[i].peak_total_bytes));
    on_host.push_back(difference(host_bytes(counted), host_bytes(estimate.stages[i])));
  }
  return [=, snapshots = now.snapshots](const config::Config& other, Priced priced) {
    MemoryForecast then = estimate_by(*book, other, hardware, priced);
    then.snapshots = snapshots;
    for (std::size_t i = 0; i < std::min(then.stages.size(), on_device.size()); ++i) {
      std::size_t& bytes = then.stages[i].peak_total_bytes;
      bytes = moved(bytes, on_device[i]);
      if (host_bytes(then.stages[i]) > 0) {
        host_bytes(then.stages[i]) = moved(host_bytes(then.stages[i]), on_host[i]);
      }
    }
    return then;
  };
}

}  // namespace weft::measure
