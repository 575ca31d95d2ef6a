#include "weft/cli/memory_report.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/derive/gpu.h"
#include "weft/plan/short_step.h"

namespace weft::cli {
namespace {

// A step of more is shortened: the pipeline's order repeats after its warm-up, and so does what it
// keeps.
constexpr std::int64_t kMostMicroBatches = 16;

// The run as this process can take it: as it is, else as one rank of a pretended world.
std::optional<rules::JudgedConfig> runnable(config::Config config) {
  if (std::optional<rules::JudgedConfig> judged = rules::judge(config).judged) return judged;
  config.runtime.backend = config::CommBackend::Fake;
  config.checkpoint = {};
  return rules::judge(config).judged;
}

std::string tags_text(const train::PredictedMemory& memory) {
  std::vector<std::string> parts;
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    const std::size_t bytes = memory.peak_bytes[base::at(tag)];
    if (bytes == 0) continue;
    parts.push_back(base::text("{} {}",
                               tensor::name_of(static_cast<tensor::Tag>(tag)),
                               base::human_bytes(static_cast<double>(bytes))));
  }
  return base::text("{}", fmt::join(parts, ", "));
}

std::string total_text(const train::PredictedMemory& memory) {
  return base::human_bytes(static_cast<double>(memory.peak_total_bytes));
}

train::PredictedMemory largest(const MemoryReport& report) {
  return std::ranges::max(report.stages, {}, &train::PredictedMemory::peak_total_bytes);
}

base::Json json_of(const train::PredictedMemory& memory) {
  base::Json tags = base::Json::object();
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    tags[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] =
        memory.peak_bytes[base::at(tag)];
  }
  return {{"rank", memory.rank},
          {"peak_bytes_by_tag", std::move(tags)},
          {"peak_total_bytes", memory.peak_total_bytes}};
}

}  // namespace

MemoryReport predict_memory(const config::Config& config) {
  MemoryReport report{.stages = {}, .micro_batches = plan::micro_batches_of(config)};
  report.run = report.micro_batches <= kMostMicroBatches
                   ? report.micro_batches
                   : plan::fewest_micro_batches(config.model, report.micro_batches);
  const auto run = runnable(plan::with_micro_batches(config, report.run));
  if (run) report.stages = train::predict_memory(*run);
  return report;
}

std::optional<rules::Missing> gpu_limit(const config::Config& config, const MemoryReport& report) {
  const derive::GpuFacts gpu = derive::gpu_facts(config.hardware);
  if (!gpu.memory_gb || report.stages.empty()) return std::nullopt;
  const train::PredictedMemory most = largest(report);
  const double room = *gpu.memory_gb * 1e9, need = static_cast<double>(most.peak_total_bytes);
  if (need <= room) return std::nullopt;
  return rules::Missing{
      .part = "room on the GPU",
      .keys = {"hardware.gpu"},
      .message = base::text("rank {} needs {} at one time ({}), {} more than the {} of {}",
                            most.rank,
                            total_text(most),
                            tags_text(most),
                            base::human_bytes(need - room),
                            base::human_bytes(room),
                            gpu.name),
      .fix = "use more ranks, a smaller train.micro_batch_size or a smaller model"};
}

base::Json to_json(const MemoryReport& report) {
  base::Json stages = base::Json::array();
  for (const train::PredictedMemory& stage : report.stages) stages.push_back(json_of(stage));
  return {{"predicted", !report.stages.empty()},
          {"micro_batches", report.micro_batches},
          {"micro_batches_run", report.run},
          {"pipeline_ranks", std::move(stages)}};
}

std::string to_text(const MemoryReport& report) {
  if (report.stages.empty()) return "  not predicted: this build lacks parts of the run\n";
  std::string all;
  for (std::size_t stage = 0; stage < report.stages.size(); ++stage) {
    all += base::text("  {:<16}{}; at one time {}, predicted by a dry step\n",
                      base::text("pp rank {}", stage),
                      tags_text(report.stages[stage]),
                      total_text(report.stages[stage]));
  }
  if (report.run < report.micro_batches) {
    all += base::text("  of a step of {} of its {} micro-batches: what is kept repeats\n",
                      report.run,
                      report.micro_batches);
  }
  return all;
}

}  // namespace weft::cli
