#include "weft/report/analyse.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/gpu.h"
#include "weft/report/about.h"
#include "weft/report/comparison.h"
#include "weft/report/experts.h"
#include "weft/report/next.h"
#include "weft/report/what_if.h"
#include "weft/rules/validate.h"
#include "weft/trace/exposure/device_exposure.h"
#include "weft/trace/exposure/dominant_wall.h"

namespace weft::report {
namespace {

using base::text;

bool has_launches(const trace::DeviceTraces& traces) {
  return std::ranges::any_of(traces.devices, [](const trace::DeviceTrace& device) {
    return std::ranges::any_of(device.kernels, [](const trace::Kernel& kernel) {
      return kernel.launched_ns != trace::Kernel::kUnknown;
    });
  });
}

double worked_ms(const trace::RankWalls& rank) {
  const trace::Walls& walls = rank.walls;
  return walls.compute + walls.communication + walls.host + walls.copy;
}

// Adapts a simulated step to its price. One rank stands for its stage, so waiting for another rank
// is pipeline bubble. Times belong to the rank that works longest.
void tell_as_priced(Report& report) {
  for (trace::RankWalls& rank : report.ranks) {
    rank.walls.bubble += rank.walls.late;
    rank.walls.late = 0;
  }
  const auto longest = std::ranges::max_element(report.ranks, {}, worked_ms);
  const trace::RankExposure& exposure =
      report.exposure.ranks[base::at(longest - report.ranks.begin())];
  report.longest = longest->rank;
  report.walls = longest->walls;
  report.exposure.kinds = exposure.kinds;
  report.exposure.total = exposure.total;
}

void take_times(const Evidence& evidence, Report& report) {
  if (evidence.devices) {
    trace::DeviceTimes times = trace::analyse_devices(*evidence.devices);
    report.exposure = std::move(times.exposure);
    report.ranks = std::move(times.walls);
    report.traced_steps = evidence.devices->steps;
    report.has_launches = has_launches(*evidence.devices);
    report.notes.push_back(
        "kernels are told apart by their names, and a kernel does not say what may run beside it: "
        "exposed time that is not the host's stands under no partner");
  } else if (!evidence.timelines.empty()) {
    report.shortened = evidence.shortened;
    report.exposure = trace::analyse(evidence.timelines, evidence.clocks, evidence.shortened);
    report.ranks = trace::walls_of(evidence.timelines, evidence.clocks, evidence.shortened);
    report.traced_steps = static_cast<int>(report.exposure.step_ms.size());
  }
  std::vector<trace::Walls> walls;
  for (const trace::RankWalls& rank : report.ranks) walls.push_back(rank.walls);
  report.walls = trace::mean(walls);
  if (report.shortened.micro_batches > 0 && !report.ranks.empty()) tell_as_priced(report);
}

void take_memory(const config::Config& run, Report& report) {
  const derive::GpuFacts gpu = derive::gpu_facts(run.hardware);
  MemoryWall memory{.forecast = measure::forecast_memory(run, measure::Priced::Yes)};
  if (const std::optional<std::size_t> usable = derive::usable_bytes(gpu)) {
    memory.gpu = gpu.name;
    memory.room_bytes = *usable;
  }
  for (const std::string& left_out : memory.forecast.left_out) {
    report.notes.push_back(text("memory is told without: {}", left_out));
  }
  if (memory.forecast.is_predicted()) report.memory = std::move(memory);
}

// Config settled by the rules; nullopt, with a note: they refuse it.
std::optional<config::Config> settled(const Evidence& evidence, Report& report) {
  if (!evidence.config) return std::nullopt;
  const rules::Verdict verdict = rules::judge(*evidence.config);
  if (verdict.legal()) return verdict.config;
  report.notes.push_back(text("config.yaml is refused, so nothing is predicted: {}",
                              config::to_text(verdict.errors.front())));
  return std::nullopt;
}

// Dominant wall; if ranks share cores, all losses count as waiting for a core.
std::string dominant_wall(const Report& report) {
  if (report.memory && report.memory->share() > 1) return std::string(word(trace::Wall::Memory));
  if (report.traced_steps == 0) return "";
  const trace::Wall wall = trace::dominant_wall(trace::lost_of(report.walls), report.walls.step);
  if (!report.crowded.empty() && wall != trace::Wall::Compute) return "cores";
  return std::string(word(wall));
}

// Reason for a poor prediction. The prediction assumes gapless nodes and a core or GPU per rank.
std::string reason_for(const Comparison& comparison, const std::string& crowded) {
  constexpr double kFar = 0.25;
  const double error = comparison.step.error();
  if (std::abs(error) < kFar) return "";
  if (!crowded.empty() && error < 0) {
    return "a step is predicted as if each rank had cores of its own; here they are shared";
  }
  if (error > 0) return "the nodes ran faster than they do by the costs above";
  const Comparison::Row& replayed = comparison.replayed;
  const bool is_replayed = replayed.predicted_ms > 0;
  if (is_replayed && replayed.error() < error / 2) {
    return text(
        "even its measured nodes fill only {:.4g} of {:.4g} ms: the rest lies between them "
        "(issuing, waking, the operating system, other programs)",
        replayed.predicted_ms,
        comparison.step.measured_ms);
  }
  return "the nodes took longer than they do by the costs above: the rows below say which";
}

// Results that need both the schedule and the trace of a run.
struct Priced {
  std::optional<WhatIf> what_if;
  std::optional<plan::NominalRates> rates;
};

// Prediction by the calibration; if that does not cover the run, without it and with a note.
PredictedRun predicted_run(const Evidence& evidence,
                           const config::Config& run,
                           double step_ms,
                           Report& report) {
  if (evidence.calibration) {
    try {
      return compare(run, evidence.timelines, step_ms, evidence.calibration);
    } catch (const base::ConfigError& error) {
      report.notes.push_back(text("nothing is predicted by the calibration: {}", error.what()));
    }
  }
  return compare(run, evidence.timelines, step_ms, std::nullopt);
}

Priced price(const Evidence& evidence, const config::Config& run, Report& report) {
  Priced priced;
  if (evidence.timelines.empty()) return priced;
  try {
    if (evidence.origin == Evidence::Origin::Simulated) {
      priced.what_if = WhatIf::of_simulated(run, evidence.timelines);
      return priced;
    }
    const double step_ms = report.exposure.mean_step_ms();
    PredictedRun predicted = predicted_run(evidence, run, step_ms, report);
    priced.rates = predicted.rates;
    report.comparison = std::move(predicted.comparison);
    if (!run.runtime.schedule.empty()) {
      report.notes.push_back(
          "the order came from runtime.schedule: other orders are not simulated");
      return priced;
    }
    priced.what_if = WhatIf::of_measured(run, evidence.timelines, step_ms);
    report.comparison->replayed = {.name = "replayed",
                                   .measured_ms = step_ms,
                                   .predicted_ms = priced.what_if->replayed_ms()};
  } catch (const base::ConfigError& error) {
    report.notes.push_back(
        text("the trace does not fit the run's schedule, so nothing is predicted: {}",
             error.what()));
    priced = {};
  }
  return priced;
}

}  // namespace

std::string_view word(Phase phase) {
  switch (phase) {
    case Phase::Fit:
      return "fit";
    case Phase::Scale:
      return "scale";
    case Phase::Profile:
      return "profile";
    case Phase::Retune:
      return "retune";
  }
  return "";
}

double MemoryWall::share() const {
  if (room_bytes == 0 || !forecast.is_predicted()) return 0;
  return static_cast<double>(forecast.peak_bytes()) / static_cast<double>(room_bytes);
}

double Report::step_ms() const {
  if (traced_steps > 0) return walls.step;
  return steps ? steps->median_ms : 0;
}

Report analyse(const Evidence& evidence) {
  Report report{.name = evidence.name,
                .kind = evidence.kind,
                .learning = evidence.learning,
                .steps = evidence.steps,
                .loads = evidence.loads,
                .notes = evidence.notes};
  take_times(evidence, report);
  const std::optional<config::Config> run = settled(evidence, report);
  for (const Start& start : evidence.starts) report.starts.push_back(start.step);
  if (!run) report.experts = experts_in(evidence);
  Priced priced;
  if (run) {
    report.about = about_run(*run, evidence);
    report.crowded = crowding_of(*run, evidence.starts);
    take_memory(*run, report);
    priced = price(evidence, *run, report);
    if (report.comparison) {
      report.comparison->reason = reason_for(*report.comparison, report.crowded);
    }
  }
  report.wall = dominant_wall(report);
  report.next = next_to_try({.report = report,
                             .run = run ? &*run : nullptr,
                             .what_if = priced.what_if ? &*priced.what_if : nullptr,
                             .rates = priced.rates});
  return report;
}

}  // namespace weft::report
