#include "weft/plan/published/measured_runs.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/price/price.h"
#include "weft/plan/published/validation.h"

namespace weft::plan {
namespace {

using base::text;
using config::Config;

// Errors needed for a statement about nine in ten.
constexpr std::size_t kNearestRuns = 10;

enum class Generation { Unknown, Hopper, Blackwell };

Generation generation_of(std::string_view gpu) {
  if (gpu.starts_with("gb") || gpu.starts_with("b")) return Generation::Blackwell;
  if (gpu.starts_with("h")) return Generation::Hopper;
  return Generation::Unknown;
}

bool is_in_class(const Config& one, const Config& other) {
  return (one.model.experts() > 0) == (other.model.experts() > 0);
}

bool is_same_model(const config::ModelConfig& one, const config::ModelConfig& other) {
  return one.hidden_size == other.hidden_size && one.num_layers == other.num_layers &&
         one.experts() == other.experts();
}

int number_distance(DType one, DType other) {
  // fp32 counts as bf16.
  const auto bits = [](DType number) { return std::min(16, base::row_of(number).bits); };
  if (one == other) return 0;
  return bits(one) == bits(other) ? 1 : 2;
}

int dispatcher_distance(const config::ModelConfig& one, const config::ModelConfig& other) {
  if (one.experts() == 0) return 0;
  const auto is_flex = [](const config::ModelConfig& model) {
    return model.moe_token_dispatcher_type == config::Dispatcher::Flex;
  };
  if (is_flex(one) != is_flex(other)) return 2;
  return is_flex(one) && one.moe_flex_dispatcher_backend != other.moe_flex_dispatcher_backend;
}

int distance_of(const Config& config, std::string_view gpu, const PublishedRun& run) {
  const Config& other = run.config;
  int distance = run.gpu == gpu ? 0 : (generation_of(run.gpu) == generation_of(gpu) ? 3 : 6);
  distance += number_distance(number_of(config.model), number_of(other.model));
  distance += dispatcher_distance(config.model, other.model);
  const auto merged = [](const Config& of) -> bool {
    return of.comm_overlap.overlap_moe_expert_parallel_comm;
  };
  distance += merged(config) != merged(other) ? 1 : 0;
  return distance + (is_same_model(config.model, other.model) ? 0 : 1);
}

std::string mode_words(const std::set<RunMode>& modes) {
  std::vector<std::string_view> words;
  for (const RunMode mode : modes) words.push_back(plan::word(mode));
  return text("{}", fmt::join(words, " + "));
}

}  // namespace

std::string band_text(const Trust& trust) {
  if (!trust.band) return "";
  return text("±{:.0f} %, 9 of 10 within {:.0f} %",
              trust.band->median * 100,
              trust.band->p90 * 100);
}

base::Json to_json(const Trust& trust) {
  base::Json json{{"median_error", nullptr}, {"p90_error", nullptr}, {"rows", 0}};
  if (trust.band) {
    json = {{"median_error", trust.band->median},
            {"p90_error", trust.band->p90},
            {"rows", trust.band->rows}};
  }
  json["unmeasured"] = trust.unmeasured;
  return json;
}

MeasuredRuns::MeasuredRuns(std::vector<PublishedTable> tables, HardwareTable hardware)
    : tables_(std::move(tables)), hardware_(std::move(hardware)) {
  for (const PublishedTable& table : tables_) {
    for (const PublishedRun& run : table.runs) {
      const auto gpu = hardware_.find(run.gpu);
      const bool has_products =
          gpu != hardware_.end() && gpu->second.peak(number_of(run.config.model)) > 0;
      // A self-contradicting source is no measurement.
      if (!has_products || !run.doubt.empty()) continue;
      runs_.push_back(
          {.run = &run, .is_held_out = !table.is_fitted(run), .modes = modes_of(run.config)});
    }
  }
}

Trust MeasuredRuns::of(const Config& config, const Hardware& hardware) {
  if (generation_of(hardware.name) == Generation::Unknown) return {};
  return {.band = band_of(config, hardware), .unmeasured = unmeasured(config, hardware)};
}

std::optional<ErrorSummary> MeasuredRuns::band_of(const Config& config, const Hardware& hardware) {
  std::vector<std::pair<int, std::size_t>> near;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (!runs_[i].is_held_out || !is_in_class(runs_[i].run->config, config)) continue;
    near.emplace_back(distance_of(config, hardware.name, *runs_[i].run), i);
  }
  if (near.empty()) return std::nullopt;
  std::ranges::sort(near);
  // Runs as near as the last one count too.
  const int farthest = near[std::min(kNearestRuns, near.size()) - 1].first;
  std::vector<double> errors;
  for (const auto& [distance, i] : near) {
    if (distance <= farthest) errors.push_back(error_of(runs_[i]));
  }
  return summary_of(errors);
}

double MeasuredRuns::error_of(Measured& measured) {
  if (!measured.error) {
    const PublishedRun& run = *measured.run;
    const Price price = price_step(run.config, hardware_.at(run.gpu));
    measured.error = counted_tflops(run, price) / run.tflops - 1;
  }
  return *measured.error;
}

std::vector<std::string> MeasuredRuns::unmeasured(const Config& config,
                                                  const Hardware& hardware) const {
  const Generation generation = generation_of(hardware.name);
  std::set<RunMode> known;  // modes in runs of the class on GPUs of the generation
  bool has_all = false;
  const std::set<RunMode> own = modes_of(config);
  for (const Measured& measured : runs_) {
    if (generation_of(measured.run->gpu) != generation) continue;
    if (!is_in_class(measured.run->config, config)) continue;
    known.insert(measured.modes.begin(), measured.modes.end());
    has_all = has_all || std::ranges::includes(measured.modes, own);
  }
  std::vector<std::string> missing;
  for (const RunMode mode : own) {
    if (!known.contains(mode)) missing.emplace_back(plan::word(mode));
  }
  if (missing.empty() && !has_all && own.size() > 1) {
    missing.push_back(text("{} together", mode_words(own)));
  }
  return missing;
}

}  // namespace weft::plan
