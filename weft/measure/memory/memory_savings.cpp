#include "weft/measure/memory/memory_savings.h"

#include <algorithm>
#include <atomic>
#include <tuple>

#include "weft/base/casts.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/parallel/parallel.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/derive/logits.h"
#include "weft/derive/memory/memory.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/plan/memory/memory_book.h"
#include "weft/plan/memory/memory_keys.h"
#include "weft/rules/validate.h"
#include "weft/schedule/memory/offload_share.h"
#include "weft/schedule/memory/savings.h"

namespace weft::measure {
namespace {

using config::Config;
using config::RecomputeGranularity;
using config::RecomputeModule;

constexpr RecomputeModule kModules[] = {RecomputeModule::CoreAttn,
                                        RecomputeModule::Layernorm,
                                        RecomputeModule::MlaUpProj,
                                        RecomputeModule::MoeAct,
                                        RecomputeModule::Mlp,
                                        RecomputeModule::Moe,
                                        RecomputeModule::SharedExperts};

using Offloaded = std::vector<config::OffloadModule>;

// Modules offloaded together: the projection's input is attention's output.
std::vector<Offloaded> offloads() {
  using enum config::OffloadModule;
  return {{CoreAttn, AttnProj}, {AttnNorm}, {MlpNorm}, {QkvLinear}, {ExpertFc1}, {MoeAct}};
}

// Large enough for products to run at full speed.
constexpr std::int64_t kLogitsChunk = 1024;

void recompute(Config& config, RecomputeModule module) {
  config::ModelConfig& model = config.model;
  std::vector<RecomputeModule> modules;
  if (model.recompute_granularity == RecomputeGranularity::Selective) {
    modules = model.recompute_modules.value_or(std::vector{RecomputeModule::CoreAttn});
  }
  modules.push_back(module);
  std::ranges::sort(modules);  // equal sets have equal words
  model.recompute_granularity = RecomputeGranularity::Selective;
  model.recompute_modules = modules;
}

void recompute_all(Config& config) {
  config::ModelConfig& model = config.model;
  model.recompute_granularity = RecomputeGranularity::Full;
  model.recompute_modules = std::nullopt;
  model.recompute_method = config::RecomputeMethod::Uniform;
  model.recompute_num_layers = 1;
}

void offload(Config& config, const Offloaded& modules) {
  config::ModelConfig& model = config.model;
  if (!model.fine_grained_activation_offloading) model.offload_modules.clear();
  model.fine_grained_activation_offloading = true;
  for (const config::OffloadModule module : modules) {
    const bool is_new =
        std::ranges::find(model.offload_modules, module) == model.offload_modules.end();
    if (is_new) model.offload_modules.push_back(module);
  }
}

void shard_optimizer(Config& config) {
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
}

// True if host memory is separate from the ranks' memory.
bool has_host_beside(const Config& config) {
  return derive::is_on_gpu(config) || config.runtime.device == config::DeviceKind::Cuda;
}

void offload_optimizer(Config& config) {
  config.optimizer.optimizer_cpu_offload = config.optimizer.overlap_cpu_optimizer_d2h_h2d = true;
  config.optimizer.optimizer_offload_fraction = 1;
}

// Remainders need the distributed optimizer.
void keep_remainders(Config& config) {
  shard_optimizer(config);
  config.optimizer.use_precision_aware_optimizer = true;
}

void shrink_moments(Config& config) {
  keep_remainders(config);
  config.optimizer.exp_avg_dtype = config.optimizer.exp_avg_sq_dtype = base::DType::BF16;
}

// Halves gradients of bf16 weights; gradients of fp32 weights keep their width.
void shrink_gradients(Config& config) {
  keep_remainders(config);
  config.optimizer.main_grads_dtype = base::DType::BF16;
}

// True if the config is legal as written and as counted.
bool is_legal(const Config& config) {
  return rules::judge(config).legal() && rules::judge(rules::without_missing(config)).legal();
}

}  // namespace

std::optional<Config> with_saving(Config config, const Saving& saving) {
  switch (saving.kind) {
    case SavingKind::Recompute:
      if (config.model.recompute_granularity == RecomputeGranularity::Full) return std::nullopt;
      recompute(config, *saving.module);
      break;
    case SavingKind::RecomputeAll:
      recompute_all(config);
      break;
    case SavingKind::Offload:
      offload(config, saving.offloaded);
      break;
    case SavingKind::ShardOptimizer:
      shard_optimizer(config);
      break;
    case SavingKind::OffloadOptimizer:
      if (!has_host_beside(config)) return std::nullopt;
      offload_optimizer(config);
      break;
    case SavingKind::Remainders:
      keep_remainders(config);
      if (!derive::keeps_remainders(config)) return std::nullopt;  // weights are their own masters
      break;
    case SavingKind::SmallMoments:
      shrink_moments(config);
      break;
    case SavingKind::SmallGradients:
      if (derive::bytes_of_parameter(config).weight == 4) return std::nullopt;
      shrink_gradients(config);
      break;
    case SavingKind::LogitsInChunks:
      config.runtime.logits_chunk = kLogitsChunk;
      break;
  }
  if (is_legal(config)) return config;
  config.runtime.recompute_under_overlap = true;
  if (is_legal(config)) return config;
  // Recomputation inside captured graphs is not possible: turns the graphs off.
  config.model.cuda_graph_impl = config::CudaGraphImpl::None;
  config.model.cuda_graph_modules = config.model.cuda_graph_scope = {};
  return is_legal(config) ? std::optional(config) : std::nullopt;
}

SavedState saved_state(const Config& asked) {
  const Config config = rules::judge(rules::without_missing(asked)).config;
  const schedule::Detail detail = schedule::with_recomputed({}, config);
  const derive::ParameterBytes bytes = derive::bytes_of_parameter(asked);
  SavedState state{.recomputed = {},
                   .recomputed_layers = detail.recomputed_layers,
                   .recomputed_group = detail.recomputed_group,
                   .offloaded = {},
                   .is_sharded = config.ddp.use_distributed_optimizer,
                   .logits = derive::logits_kept(asked),
                   .share_on_host = derive::optimizer_offload(asked).fraction,
                   .bytes_of_parameter = bytes.optimizer + bytes.gradient};
  for (const schedule::PieceName& name : detail.recomputed) {
    state.recomputed.emplace(name.piece, name.part);
  }
  plan::MemoryBook book;
  state.offloaded = book.offloaded(config);
  const auto is_kept = [](const auto& parts) { return parts.empty(); };
  const bool is_none = std::ranges::all_of(state.offloaded, [&](const auto& layers) {
    return std::ranges::all_of(layers, is_kept);
  });
  if (is_none) state.offloaded.clear();
  return state;
}

bool is_new(const SavedState& before, const SavedState& after) {
  const auto layers = [](const SavedState& state) {
    return std::tie(state.recomputed,
                    state.recomputed_layers,
                    state.recomputed_group,
                    state.offloaded,
                    state.is_sharded,
                    state.logits);
  };
  return layers(before) != layers(after) || before.share_on_host < after.share_on_host ||
         before.bytes_of_parameter > after.bytes_of_parameter;
}

bool is_new(const Config& before, const Config& after) {
  return is_new(saved_state(before), saved_state(after));
}

std::vector<std::string> words_of(const Config& before, const Config& after) {
  std::vector<std::string> words;
  const auto add_change = [&](std::string_view key) {
    const config::Field& field = *config::find_field(key);
    std::string value = config::value_text(field, after);
    if (value == config::value_text(field, before)) return;
    std::erase(value, '"');
    words.push_back(base::text("{}={}", key, value));
  };
  std::ranges::for_each(plan::kMemoryKeys, add_change);
  std::ranges::for_each(plan::kKeysOfSavings, add_change);
  return words;
}

namespace {

// True if any layer offloads a part of that module.
bool offloads_any(const Config& config, config::OffloadModule module) {
  Config named = config;
  named.runtime.offload_layers_share = 1;
  for (const schedule::OffloadedModule& each : schedule::offloaded_modules(named)) {
    if (each.module != module) continue;
    for (const auto& layers : saved_state(config).offloaded) {
      for (const std::vector<schedule::PieceName>& parts : layers) {
        if (std::ranges::find_first_of(parts, each.parts) != parts.end()) return true;
      }
    }
  }
  return false;
}

// True if the module is selected and the link has no capacity for it in any layer.
bool finds_link_full(const Config& config, const Saving& saving) {
  const bool is_limited = config.runtime.offload_layers_share == 0;
  if (saving.kind != SavingKind::Offload || !is_limited) return false;
  const config::OffloadModule module = saving.offloaded.front();
  Config unlimited = config;
  unlimited.runtime.offload_layers_share = 1;
  return !offloads_any(config, module) && offloads_any(unlimited, module);
}

// `full`: receives the names of savings that the link cannot carry.
std::vector<Saving> known_savings(const Config& asked, std::vector<std::string>& full) {
  std::vector<Saving> all;
  for (const RecomputeModule module : kModules) {
    all.push_back({.kind = SavingKind::Recompute,
                   .module = module,
                   .name = std::string(config::word(module)),
                   .words = {}});
  }
  all.push_back({.kind = SavingKind::RecomputeAll, .name = "full recomputation", .words = {}});
  for (const Offloaded& modules : offloads()) {
    std::vector<std::string_view> names;
    for (const config::OffloadModule module : modules) names.push_back(config::word(module));
    all.push_back({.kind = SavingKind::Offload,
                   .offloaded = modules,
                   .name = base::text("{}{}", kOffload, fmt::join(names, ", ")),
                   .words = {}});
  }
  all.push_back({.kind = SavingKind::ShardOptimizer, .name = "distributed optimizer", .words = {}});
  all.push_back({.kind = SavingKind::OffloadOptimizer, .name = "optimizer offload", .words = {}});
  all.push_back({.kind = SavingKind::Remainders, .name = "16-bit remainders", .words = {}});
  all.push_back({.kind = SavingKind::SmallMoments, .name = "bf16 moments", .words = {}});
  all.push_back({.kind = SavingKind::SmallGradients, .name = "bf16 gradients", .words = {}});
  all.push_back({.kind = SavingKind::LogitsInChunks, .name = "logits in chunks", .words = {}});
  const SavedState now = saved_state(asked);
  std::erase_if(all, [&](const Saving& saving) {
    const std::optional<Config> with = with_saving(asked, saving);
    if (with && is_new(now, saved_state(*with))) return false;
    if (with && finds_link_full(*with, saving)) full.push_back(saving.name + " (the link is full)");
    return true;
  });
  return all;
}

void forecast_saving(const Config& asked,
                     const MemoryForecast& now,
                     const Forecaster& forecast,
                     Saving& saving) {
  const std::optional<Config> found = with_saving(asked, saving);
  if (!found) return;
  const Config& with = *found;
  saving.words = words_of(asked, with);
  saving.forecast = forecast(with, Priced::Yes);
  for (train::PredictedMemory& stage : saving.forecast.stages) stage.timeline.clear();
  const MemoryForecast& then = saving.forecast;
  if (!then.is_predicted()) return;
  saving.peak_bytes = then.peak_bytes();
  saving.bytes =
      static_cast<std::int64_t>(now.peak_bytes()) - static_cast<std::int64_t>(saving.peak_bytes);
  saving.seconds = then.step_seconds - now.step_seconds;
  saving.host_bytes = then.host_bytes() - std::min(then.host_bytes(), now.host_bytes());
}

}  // namespace

void sort_by_cost(std::vector<Saving>& savings, double step_seconds) {
  std::ranges::stable_sort(savings, [&](const Saving& a, const Saving& b) {
    const auto is_free = [&](const Saving& saving) {
      return saving.seconds <= kNoTime * step_seconds;
    };
    if (is_free(a) != is_free(b)) return is_free(a);
    if (is_free(a)) return a.bytes > b.bytes;
    return base::number(a.bytes) / a.seconds > base::number(b.bytes) / b.seconds;
  });
}

Savings find_savings(const Config& asked,
                     const MemoryForecast& now,
                     const Tell& tell,
                     const Forecaster& forecast) {
  Savings found;
  std::vector<Saving> all = known_savings(asked, found.without);
  std::atomic<int> done = 0;
  base::parallel(static_cast<int>(std::ssize(base::usable_cores())),
                 std::ssize(all),
                 [&](std::int64_t i) {
                   Saving& saving = all[base::at(i)];
                   forecast_saving(asked, now, forecast, saving);
                   tell(base::text("savings: {} of {}, {}", ++done, all.size(), saving.name));
                 });
  for (Saving& saving : all) {
    if (saving.bytes > 0) {
      found.worthwhile.push_back(std::move(saving));
    } else {
      found.without.push_back(saving.name);
      found.elsewhere.push_back(std::move(saving));
    }
  }
  sort_by_cost(found.worthwhile, now.step_seconds);
  return found;
}

}  // namespace weft::measure
