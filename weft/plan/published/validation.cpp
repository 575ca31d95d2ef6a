#include "weft/plan/published/validation.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price.h"
#include "weft/plan/published/published_pairs.h"

namespace weft::plan {
namespace {

using base::text;

base::Json json_of(const ErrorSummary& summary) {
  return {{"rows", summary.rows}, {"median", summary.median}, {"p90", summary.p90}};
}

std::string line_of(std::string_view name, const ErrorSummary& summary) {
  if (summary.rows == 0) return "";
  return text("{}: {} rows, median error {:.1f} %, 90th percentile {:.1f} %\n",
              name,
              summary.rows,
              summary.median * 100,
              summary.p90 * 100);
}

std::string published_layout(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  return text("tp{} pp{} vp{} ep{} mbs{}{}",
              model.tensor_model_parallel_size,
              model.pipeline_model_parallel_size,
              model.virtual_pipeline_model_parallel_size.value_or(1),
              model.expert_model_parallel_size,
              config.train.micro_batch_size,
              config.ddp.use_megatron_fsdp ? " fsdp" : "");
}

}  // namespace

ErrorSummary summary_of(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<double> sorted;
  for (const double error : errors) sorted.push_back(std::abs(error));
  std::ranges::sort(sorted);
  const auto place = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(sorted.size())));
  return {.rows = sorted.size(),
          .median = base::median(sorted),
          .p90 = sorted[std::max<std::size_t>(place, 1) - 1]};
}

double counted_tflops(const PublishedRun& run, const Price& price) {
  if (!run.gflop_per_token) return price.tflops_per_gpu;
  return price.tokens_per_second_per_gpu * *run.gflop_per_token * 1e-3;
}

Validation validate(const PublishedTable& table, const HardwareTable& hardware) {
  Validation result{.rows = {},
                    .left_out = table.left_out,
                    .all = {},
                    .fitted = {},
                    .held_out = {}};
  std::vector<double> all, fitted, held_out;
  for (const PublishedRun& run : table.runs) {
    const auto gpu = hardware.find(run.gpu);
    if (gpu == hardware.end()) {
      result.left_out.push_back(text("line {}: unknown GPU '{}': known are {}",
                                     run.line,
                                     base::shown(run.gpu),
                                     fmt::join(std::views::keys(hardware), ", ")));
      continue;
    }
    if (gpu->second.peak(number_of(run.config.model)) <= 0) {
      result.left_out.push_back(
          text("line {}: {} has no products in {}", run.line, run.gpu, base::shown(run.precision)));
      continue;
    }
    const Price price = price_step(run.config, gpu->second);
    PricedRun row{.run = &run,
                  .predicted = counted_tflops(run, price),
                  .step_ms = price.step_ms,
                  .is_fitted = table.is_fitted(run)};
    all.push_back(row.error());
    (row.is_fitted ? fitted : held_out).push_back(row.error());
    result.rows.push_back(row);
  }
  result.all = summary_of(all);
  result.fitted = summary_of(fitted);
  result.held_out = summary_of(held_out);
  return result;
}

base::Json to_json(const Validation& validation) {
  base::Json rows = base::Json::array();
  for (const PricedRun& row : validation.rows) {
    const PublishedRun& run = *row.run;
    rows.push_back({{"line", run.line},
                    {"release", run.release},
                    {"model", run.model},
                    {"system", run.system},
                    {"precision", run.precision},
                    {"gpus", run.config.runtime.world_size.value_or(0)},
                    {"layout", published_layout(run.config)},
                    {"note", run.note},
                    {"used_for_fit", row.is_fitted},
                    {"published", run.tflops},
                    {"predicted", row.predicted},
                    {"error", row.error()},
                    {"step_ms", row.step_ms}});
  }
  return {{"rows", rows},
          {"median", validation.all.median},
          {"p90", validation.all.p90},
          {"fitted", json_of(validation.fitted)},
          {"held_out", json_of(validation.held_out)},
          {"pairs", to_json(pairs_of(validation))},
          {"left_out", validation.left_out}};
}

std::string to_text(const Validation& validation) {
  std::string result = text("{:>5} {:9} {:16} {:10} {:8} {:28} {:>9} {:>9} {:>7}  {}\n",
                            "line",
                            "release",
                            "model",
                            "system",
                            "number",
                            "layout",
                            "published",
                            "predicted",
                            "error",
                            "used");
  for (const PricedRun& row : validation.rows) {
    const PublishedRun& run = *row.run;
    result += text("{:>5} {:9} {:16} {:10} {:8} {:28} {:>9.0f} {:>9.0f} {:>+6.1f}%  {}\n",
                   run.line,
                   base::shown(run.release),
                   base::shown(run.model),
                   base::shown(run.system),
                   base::shown(run.precision).substr(0, 8),
                   published_layout(run.config),
                   run.tflops,
                   row.predicted,
                   row.error() * 100,
                   row.is_fitted ? "fit" : "held out");
  }
  for (const std::string& one : validation.left_out) result += "left out: " + one + "\n";
  result += line_of("all", validation.all);
  result += line_of("models used for the fit", validation.fitted);
  result += line_of("models held out", validation.held_out);
  return result + to_text(pairs_of(validation));
}

}  // namespace weft::plan
