#include "weft/plan/memory/offload_ladder.h"

#include <algorithm>

#include "weft/plan/search/layout_choice.h"

namespace weft::plan {
namespace {

using config::ModelConfig;
using config::OffloadModule;
using config::RecomputeModule;

std::string offload_words(const std::vector<OffloadModule>& modules) {
  std::string words;
  for (const OffloadModule module : modules) {
    words += (words.empty() ? "" : ", ") + std::string(config::word(module));
  }
  return words;
}

bool recomputes(const RecomputeRung& again, RecomputeModule module) {
  return std::ranges::find(again.modules, module) != again.modules.end();
}

}  // namespace

// Attention first: it offloads fewer bytes than it frees.
std::vector<OffloadRung> offload_ladder(const ModelConfig& model) {
  std::vector<OffloadRung> ladder{{.name = "none", .modules = {}}};
  std::vector<OffloadModule> modules;
  const auto add = [&](const std::vector<OffloadModule>& more) {
    modules.insert(modules.end(), more.begin(), more.end());
    ladder.push_back({.name = offload_words(modules), .modules = modules});
  };
  add({OffloadModule::CoreAttn, OffloadModule::AttnProj});
  if (model.experts() > 0) add({OffloadModule::ExpertFc1, OffloadModule::MoeAct});
  add({OffloadModule::MlpNorm, OffloadModule::QkvLinear, OffloadModule::AttnNorm});
  return ladder;
}

std::vector<OffloadModule> modules_beside(const OffloadRung& rung,
                                          const RecomputeRung& again,
                                          const ModelConfig& model) {
  std::vector<OffloadModule> left = rung.modules;
  const auto drop = [&](std::initializer_list<OffloadModule> gone) {
    std::erase_if(left, [&](OffloadModule module) {
      return std::ranges::find(gone, module) != gone.end();
    });
  };
  if (again.is_full) {
    std::erase_if(left, [](OffloadModule module) { return module != OffloadModule::AttnNorm; });
    return left;
  }
  using enum OffloadModule;
  if (recomputes(again, RecomputeModule::Layernorm)) drop({QkvLinear});
  if (recomputes(again, RecomputeModule::Moe)) drop({ExpertFc1, MoeAct});
  if (recomputes(again, RecomputeModule::CoreAttn)) drop({AttnProj});
  // Attention's output is offloaded together with its inputs, or not at all.
  const bool expands_again =
      model.multi_latent_attention && recomputes(again, RecomputeModule::MlaUpProj);
  if (expands_again) drop({CoreAttn, AttnProj});
  return left;
}

void set_host_state(config::Config& config, std::size_t quarters) {
  config::OptimizerConfig& optimizer = config.optimizer;
  optimizer.optimizer_cpu_offload = optimizer.overlap_cpu_optimizer_d2h_h2d = quarters > 0;
  if (quarters > 0) optimizer.use_precision_aware_optimizer = true;
  optimizer.optimizer_offload_fraction =
      static_cast<double>(quarters) / static_cast<double>(kStateQuarters);
}

}  // namespace weft::plan
