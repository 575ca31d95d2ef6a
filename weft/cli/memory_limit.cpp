#include "weft/cli/memory_limit.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/cli/machine_limit.h"
#include "weft/cli/memory_search.h"
#include "weft/derive/derived_run.h"
#include "weft/derive/optimizer_offload.h"

namespace weft::cli {
namespace {

using base::text;
using measure::HostRoom;
using measure::Overrun;
using measure::RanksIn;
using measure::Saving;
using rules::Missing;

constexpr double kHundredths = 100;  // of a share, in advice
constexpr double kNoTime = 1e-4;     // of a step
constexpr const char* kSmaller =
    "use more ranks, a smaller train.micro_batch_size or a smaller model";
constexpr const char* kSmallerHere =
    "use a smaller model, fewer ranks or a smaller train.micro_batch_size, or spread the ranks "
    "over machines (runtime.backend=mpi)";

// More ranks on one machine need more of it.
const char* smaller(const MemoryReport& report) {
  const bool is_here = report.room.host && report.room.host->memory == RanksIn::Host;
  return is_here ? kSmallerHere : kSmaller;
}

std::string ranks_text(std::int64_t ranks) {
  return ranks == 1 ? "a rank needs" : text("{} ranks need together", ranks);
}

std::string in_words(std::size_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

std::string time_text(double seconds, const MemoryReport& report) {
  const double step = report.forecast.step_seconds;
  if (seconds <= kNoTime * step) return "no time";
  if (seconds >= step) return text("{:.1f} times the step", seconds / step);
  return text("{:.2g} % of the step", 100 * seconds / step);
}

std::string parts_text(const train::BytesByTag& bytes) {
  std::vector<std::string> parts;
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    if (bytes[base::at(tag)] == 0) continue;
    parts.push_back(text("{} {}",
                         tensor::name_of(static_cast<tensor::Tag>(tag)),
                         in_words(bytes[base::at(tag)])));
  }
  return text("{}", fmt::join(parts, ", "));
}

std::string cheapest_text(const MemoryReport& report) {
  std::string all;
  for (const Saving& saving : report.cheapest) {
    all += text("{} frees {} for {}{} ({}); ",
                saving.name,
                in_words(static_cast<std::size_t>(saving.bytes)),
                time_text(saving.seconds, report),
                saving.rounds() ? ", rounding otherwise" : "",
                fmt::join(saving.words, " "));
  }
  return all;
}

std::string basis_text(const MemoryReport& report) {
  const bool are_wanted = !measure::is_hopeless(report.forecast, report.room);
  if (!report.savings && are_wanted) return "`weft memory` looks for savings that make it fit";
  return report.savings_counted == Counted::ByDrySteps
             ? "`weft memory` shows what it is made of"
             : "savings are estimated as `weft plan` does, and `weft memory` counts them";
}

std::string savings_fix(const MemoryReport& report) {
  const std::string fit = fit_text(report);
  return cheapest_text(report) + fit + (fit.empty() ? "" : "; ") + basis_text(report);
}

Missing device_limit(const MemoryReport& report, const Overrun& lacking) {
  const train::PredictedMemory& most = report.forecast.largest();
  const measure::DeviceRoom& device = *report.room.device;
  return {.part = "room on the GPU",
          .keys = {"hardware.gpu"},
          .message = text("rank {} needs {} at one time ({}), {} more than the {} that a run can "
                          "have of {} ({} {}, less {} for CUDA, its libraries and gaps)",
                          most.rank,
                          in_words(most.peak_total_bytes),
                          parts_text(most.at_peak.bytes),
                          in_words(lacking.device),
                          in_words(device.bytes()),
                          device.name,
                          device.of,
                          in_words(device.memory_bytes),
                          in_words(device.reserved_bytes)),
          .fix = savings_fix(report)};
}

Missing cores_limit(const MemoryReport& report, const Overrun& lacking) {
  const HostRoom& host = *report.room.host;
  const train::PredictedMemory& most = report.forecast.largest();
  return {.part = "room on this machine",
          .keys = {},
          .message = text("{} {} (rank {}: {}), {} more than the {} that this machine has free",
                          ranks_text(host.ranks),
                          in_words(measure::host_need(report.forecast, host)),
                          most.rank,
                          parts_text(most.at_peak.bytes),
                          in_words(lacking.host),
                          in_words(host.bytes)),
          .fix = savings_fix(report)};
}

// What takes host memory of ranks on GPUs, and the key that makes it less.
std::string host_fix(const MemoryReport& report,
                     const config::Config& config,
                     const Overrun& lacking) {
  std::vector<std::string> ways;
  const derive::OptimizerOffload offload = derive::optimizer_offload(config);
  if (offload.is_on()) {
    std::vector<std::int64_t> state;
    for (const derive::DerivedRank& rank : derive::derived_run(config).ranks) {
      state.push_back(rank.bytes.offloaded);
    }
    const double taken = base::number(measure::most_of_machine(
        report.forecast.layout,
        report.room.host->ranks,
        [&](int, int stage) { return static_cast<std::size_t>(state[base::at(stage)]); }));
    const double share = std::max(0.0, 1 - base::number(lacking.host) / taken);
    const double fraction = std::floor(offload.fraction * share * kHundredths) / kHundredths;
    ways.push_back(fraction > 0
                       ? text("use optimizer.optimizer_offload_fraction={:.2f} or less", fraction)
                       : "leave out optimizer.optimizer_cpu_offload");
  }
  if (config.model.fine_grained_activation_offloading) {
    ways.push_back(
        "offload fewer layers (runtime.offload_layers_share) or modules (model.offload_modules)");
  }
  if (!report.forecast.snapshots.empty()) ways.push_back("use checkpoint.async_save=false");
  return text("{}", fmt::join(ways, ", or "));
}

Missing beside_limit(const MemoryReport& report,
                     const config::Config& config,
                     const Overrun& lacking) {
  const HostRoom& host = *report.room.host;
  std::size_t copies = 0;
  for (const std::size_t bytes : report.forecast.snapshots) copies = std::max(copies, bytes);
  std::size_t offloaded = 0;
  for (const train::PredictedMemory& stage : report.forecast.stages) {
    offloaded =
        std::max(offloaded, stage.peak_bytes[static_cast<std::size_t>(tensor::Tag::Offloaded)]);
  }
  return {.part = "room in host memory",
          .keys = {"hardware.host_memory_gb"},
          .message = text("{} {} of host memory (a rank at most {} offloaded, {} copied to be "
                          "saved), {} more than the {} that a run can have of {}",
                          ranks_text(host.ranks),
                          in_words(measure::host_need(report.forecast, host)),
                          in_words(offloaded),
                          in_words(copies),
                          in_words(lacking.host),
                          in_words(host.bytes),
                          host.name),
          .fix = host_fix(report, config, lacking)};
}

}  // namespace

std::string fit_text(const MemoryReport& report) {
  if (report.fits()) return "";
  if (measure::is_hopeless(report.forecast, report.room)) {
    return text("weights and gradients alone are too large, which no saving changes: {}",
                smaller(report));
  }
  if (!report.savings) return "";
  if (!report.fit) return text("no saving listed here makes it fit: {}", smaller(report));
  const measure::Fit& fit = *report.fit;
  const std::string what = text("{} ({}, {})",
                                fmt::join(fit.words, " "),
                                in_words(fit.peak_bytes),
                                time_text(fit.seconds, report));
  if (fit.names.size() == 1) return text("{} alone makes it fit: {}", fit.names.front(), what);
  const bool one_would = std::ranges::any_of(report.savings->worthwhile, [&](const Saving& saving) {
    return !saving.rounds() && measure::overrun(saving.forecast, report.room).is_none();
  });
  return text("{}; it fits with {}: {}",
              one_would ? "several savings together cost less than the one that would suffice"
                        : "no single saving suffices",
              fmt::join(fit.names, ", "),
              what);
}

std::vector<Missing> memory_limits(const MemoryReport& report, const config::Config& config) {
  const Overrun lacking = measure::overrun(report.forecast, report.room);
  std::vector<Missing> limits;
  if (lacking.device > 0) limits.push_back(device_limit(report, lacking));
  if (lacking.host > 0) {
    limits.push_back(report.room.host->memory == RanksIn::Host
                         ? cores_limit(report, lacking)
                         : beside_limit(report, config, lacking));
  }
  return limits;
}

std::optional<Missing> least_limit(const config::Config& config, const measure::MemoryRoom& room) {
  if (!room.host || room.host->memory == RanksIn::Device) return std::nullopt;
  const std::size_t need = least_need(config, *room.host);
  if (need <= room.host->bytes) return std::nullopt;
  return Missing{.part = "room on this machine",
                 .keys = {},
                 .message = text("{} at least {} for weights, gradients, optimizer state and "
                                 "activations, and this machine has {} free",
                                 ranks_text(room.host->ranks),
                                 in_words(need),
                                 in_words(room.host->bytes)),
                 .fix = kSmallerHere};
}

std::vector<Missing> limits_of_run(const config::Config& asked,
                                   const config::Config& judged,
                                   const measure::MemoryRoom& room,
                                   const measure::Tell& tell) {
  if (is_countable(judged)) return memory_limits(report_fit(asked, room, tell), judged);
  const std::optional<Missing> limit = least_limit(judged, room);
  return limit ? std::vector{*limit} : std::vector<Missing>{};
}

}  // namespace weft::cli
