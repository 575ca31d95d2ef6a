// weft plan --imbalance: how rows are spread over experts.
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/plan_modes.h"
#include "weft/report/metrics_file.h"

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

}  // namespace

plan::Routing asked_routing(const std::string& imbalance) {
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
  return measured_routing(imbalance);
}

}  // namespace weft::cli
