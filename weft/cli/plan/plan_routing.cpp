// weft plan --imbalance: distribution of rows over experts.
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/plan_modes.h"
#include "weft/report/metrics_file.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

constexpr double kMostImbalance = 1e6, kMostSkew = 10;
constexpr std::string_view kSkew = "skew:";

[[noreturn]] void throw_unknown(const std::string& written) {
  throw base::ConfigError(base::text(
      "--imbalance={}: give balanced; rows of the busiest expert-parallel rank over the mean, as "
      "in "
      "1.3 (1 to 1e6); skew:S, where the n-th expert gets n^-S of the first one's rows, as in "
      "skew:0.3 (0 to 10); or the folder of a run, whose metrics.jsonl has expert_loads",
      base::shown(written)));
}

plan::Routing measured_routing(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / "metrics.jsonl";
  if (!std::filesystem::is_regular_file(file)) {
    throw base::ConfigError(base::text(
        "--imbalance={}: the folder has no metrics.jsonl; weft train writes it to runtime.run_dir",
        base::shown(folder)));
  }
  plan::Routing routing;
  for (const report::LayerLoad& load : report::read_metrics(file).loads) {
    if (load.max < 1) continue;  // nothing was counted
    routing.layers[load.layer] = {.p50 = load.p50, .p95 = load.p95, .max = load.max};
  }
  if (routing.layers.empty()) {
    throw base::ConfigError(base::text(
        "--imbalance={}: metrics.jsonl has no expert_loads: the run has no MoE layer, or no step",
        base::shown(folder)));
  }
  return routing;
}

std::string shape_text(const config::ModelConfig& model) {
  return base::text("{} of {}",
                    base::counted(model.num_layers, "layer"),
                    base::counted(model.experts(), "expert"));
}

// Warns of loads from another model: few experts or layers say little about many.
void warn_of_other_model(const std::string& folder, const config::ModelConfig& model) {
  constexpr std::size_t kLargestConfig = 4u << 20;
  const std::filesystem::path file = std::filesystem::path(folder) / "config.yaml";
  if (!std::filesystem::is_regular_file(file)) return;
  const config::ModelConfig measured =
      words::parse_config(base::read_text(file, kLargestConfig), file.string()).model;
  const bool is_alike = measured.num_layers == model.num_layers &&
                        measured.experts() == model.experts() &&
                        measured.moe_router_topk == model.moe_router_topk;
  if (is_alike) return;
  print_warning(base::text(
      "--imbalance={}: that run has {}, top {}, and the planned model {}, top {}: its loads stand "
      "for this model's by their quantiles, layer by layer, and layers that it does not have get "
      "the mean; a run of this model's counts says more",
      base::shown(folder),
      shape_text(measured),
      measured.moe_router_topk,
      shape_text(model),
      model.moe_router_topk));
}

}  // namespace

plan::Routing asked_routing(const std::string& imbalance, const config::ModelConfig& model) {
  if (imbalance == "balanced") return {};
  if (imbalance.starts_with(kSkew)) {
    const auto skew = base::parse_number(std::string_view(imbalance).substr(kSkew.size()));
    if (!skew || !(*skew >= 0 && *skew <= kMostSkew)) throw_unknown(imbalance);
    plan::Routing routing;
    if (*skew > 0) routing.skew = *skew;
    return routing;
  }
  if (const auto ratio = base::parse_number(imbalance)) {
    if (!(*ratio >= 1 && *ratio <= kMostImbalance)) throw_unknown(imbalance);
    return {.imbalance = *ratio};
  }
  std::error_code none;
  if (!std::filesystem::is_directory(imbalance, none)) throw_unknown(imbalance);
  plan::Routing routing = measured_routing(imbalance);
  warn_of_other_model(imbalance, model);
  return routing;
}

}  // namespace weft::cli
