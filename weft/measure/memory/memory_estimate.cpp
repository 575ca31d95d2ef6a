#include "weft/measure/memory/memory_estimate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <type_traits>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/grid/grid.h"
#include "weft/measure/bench/narrow_formats.h"
#include "weft/measure/runs/counted_step.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/price_memory.h"
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

// Megatron Bridge runs parts that this build lacks.
config::Config estimated_config(const config::Config& asked, const plan::Hardware& hardware) {
  return hardware.work.keeps_dummy_gradients ? asked : rules::without_missing(asked);
}

// A legal run as it is estimated: Weft's without what is missing.
struct Estimated {
  rules::Verdict verdict;
  MemoryForecast forecast;
};

Estimated begin_estimate(const config::Config& asked, const plan::Hardware& hardware) {
  Estimated run{.verdict = rules::judge(estimated_config(asked, hardware)), .forecast = {}};
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
  Estimated run = begin_estimate(asked, hardware);
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

// Layers times micro-batches of the shorter of the two extended models.
constexpr std::int64_t kShortLayers = 24;

// Number of layers that repeat over all stages; nullopt: they do not repeat.
std::optional<std::int64_t> repeating_layers(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const bool are_stages_alike =
      model.pipeline_model_parallel_layout.empty() && !model.num_layers_in_first_pipeline_stage &&
      !model.num_layers_in_last_pipeline_stage && !model.account_for_embedding_in_pipeline_split &&
      !model.account_for_loss_in_pipeline_split && !model.mtp_num_layers;
  const bool is_full = model.recompute_granularity == config::RecomputeGranularity::Full;
  const bool counts_layers =
      model.cpu_offloading ||
      (is_full && (model.recompute_method != config::RecomputeMethod::Uniform ||
                   model.recompute_num_layers.value_or(1) != 1));
  if (!are_stages_alike || counts_layers || model.moe_layer_freq.size() != 1) return std::nullopt;
  const std::int64_t all = model.pipeline_model_parallel_size * derive::virtual_stages(model) *
                           std::max<std::int64_t>(1, model.moe_layer_freq.front());
  return model.num_layers % all == 0 ? std::optional(all) : std::nullopt;
}

// Linear growth of a number with the layers, from two models.
struct Growth {
  // additional layers of the asked model over the shorter one, divided by the models' difference
  double layers = 0;

  template <typename Number>
  void extend(Number one, Number two, Number& to) const {
    const double first = static_cast<double>(one), second = static_cast<double>(two);
    const double value = std::max(0.0, first + layers * (second - first));
    to = std::is_integral_v<Number> ? static_cast<Number>(std::llround(value))
                                    : static_cast<Number>(value);
  }
  void extend(const train::BytesByTag& one,
              const train::BytesByTag& two,
              train::BytesByTag& to) const {
    for (std::size_t tag = 0; tag < to.size(); ++tag) extend(one[tag], two[tag], to[tag]);
  }
};

// "3999D0.experts" from "11D0.experts" and "23D0.experts": the layer's number grows too.
std::string extended_node(const Growth& growth, const std::string& one, const std::string& two) {
  const auto digits = [](const std::string& node) {
    return std::min(node.size(), node.find_first_not_of("0123456789"));
  };
  const auto number = [&](const std::string& node) {
    return base::parse_number(node.substr(0, digits(node)));
  };
  const bool is_same = one.substr(digits(one)) == two.substr(digits(two));
  if (!is_same || !number(one) || !number(two)) return two;
  std::int64_t layer = 0;
  growth.extend<std::int64_t>(static_cast<std::int64_t>(*number(one)),
                              static_cast<std::int64_t>(*number(two)),
                              layer);
  return base::text("{}{}", layer, two.substr(digits(two)));
}

// `to`: the longer of both.
void extend_stage(const Growth& growth,
                  const train::PredictedMemory& one,
                  train::PredictedMemory& to) {
  growth.extend(one.peak_bytes, to.peak_bytes, to.peak_bytes);
  growth.extend(one.peak_total_bytes, to.peak_total_bytes, to.peak_total_bytes);
  growth.extend(one.snapshot_bytes, to.snapshot_bytes, to.snapshot_bytes);
  growth.extend(one.at_peak.bytes, to.at_peak.bytes, to.at_peak.bytes);
  growth.extend(one.at_peak.issued, to.at_peak.issued, to.at_peak.issued);
  to.at_peak.node = extended_node(growth, one.at_peak.node, to.at_peak.node);
  for (train::PieceBytes& piece : to.at_peak.pieces) {
    const auto same = std::ranges::find_if(one.at_peak.pieces, [&](const auto& other) {
      return other.tag == piece.tag && other.piece == piece.piece;
    });
    const bool is_there = same != one.at_peak.pieces.end();
    growth.extend(is_there ? same->bytes : 0, piece.bytes, piece.bytes);
    growth.extend(is_there ? same->blocks : 0, piece.blocks, piece.blocks);
  }
  std::ranges::stable_sort(to.at_peak.pieces, std::ranges::greater(), &train::PieceBytes::bytes);
  to.timeline.clear();
}

}  // namespace

std::optional<MemoryForecast> extend_layers(const config::Config& asked, Priced priced) {
  const std::optional<std::int64_t> repeating = repeating_layers(rules::judge(asked).config);
  if (!repeating) return std::nullopt;
  const std::int64_t layers = asked.model.num_layers;
  const std::int64_t of_one = dry_layers(asked) / layers * *repeating;
  const std::int64_t shorter = *repeating * std::max<std::int64_t>(2, kShortLayers / of_one);
  if (layers <= 3 * shorter) return std::nullopt;
  const auto count = [&](std::int64_t some) {
    config::Config config = asked;
    config.model.num_layers = some;
    return forecast_memory(config, priced);
  };
  const MemoryForecast one = count(shorter);
  MemoryForecast two = count(2 * shorter);
  if (!one.is_predicted() || !two.is_predicted()) return std::nullopt;
  const Growth growth{.layers = base::number(layers - shorter) / base::number(shorter)};
  for (std::size_t i = 0; i < two.stages.size(); ++i) {
    extend_stage(growth, one.stages[i], two.stages[i]);
  }
  for (std::size_t i = 0; i < two.snapshots.size(); ++i) {
    growth.extend(one.snapshots[i], two.snapshots[i], two.snapshots[i]);
  }
  growth.extend(one.step_seconds, two.step_seconds, two.step_seconds);
  return two;
}

MemoryForecast estimate_memory(const config::Config& asked,
                               const plan::Hardware& hardware,
                               Priced priced) {
  plan::MemoryBook book;
  return estimate_by(book, asked, hardware, priced);
}

MemoryForecast estimate_closely(const config::Config& asked, const plan::Hardware& hardware) {
  Estimated run = begin_estimate(asked, hardware);
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
    if (one.empty()) return forecast_memory(asked, Priced::No);  // contains the reason
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
