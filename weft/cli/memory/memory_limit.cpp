#include "weft/cli/memory/memory_limit.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/cli/memory/fit_text.h"
#include "weft/cli/memory/memory_search.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/measure/memory/less_offload.h"

namespace weft::cli {
namespace {

using base::text;
using measure::HostRoom;
using measure::Overrun;
using measure::RanksIn;
using rules::Missing;

std::string ranks_text(std::int64_t ranks) {
  return ranks == 1 ? "a rank needs" : text("{} ranks need together", ranks);
}

std::string in_words(std::size_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

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

std::string basis_text(const MemoryReport& report) {
  const bool are_wanted = !measure::is_hopeless(report.forecast, report.room);
  if (!report.savings && are_wanted) return "`weft memory` looks for savings that make it fit";
  return report.savings_counted == Counted::ByDrySteps
             ? "`weft memory` shows what it is made of"
             : "estimated by the formula of `weft plan`: `weft memory --count` counts it";
}

// Adds the fit, then the cheapest savings, then a pointer to more.
MemoryLimit with_savings(Missing missing, const MemoryReport& report) {
  MemoryLimit limit{.missing = std::move(missing),
                    .ways = {},
                    .savings = report.cheapest,
                    .fit = report.fit,
                    .step_seconds = report.forecast.step_seconds};
  if (std::string fit = fit_line(report); !fit.empty()) limit.ways.push_back(std::move(fit));
  for (const measure::Saving& saving : report.cheapest) {
    limit.ways.push_back(saving_line(saving, report));
  }
  return limit;
}

MemoryLimit finished(MemoryLimit limit) {
  limit.missing.fix = text("{}", fmt::join(limit.ways, "; "));
  return limit;
}

MemoryLimit device_limit(const MemoryReport& report, const Overrun& lacking) {
  const train::PredictedMemory& most = measure::deciding_stage(report.forecast, report.room);
  const measure::DeviceRoom& device = *report.room.device;
  MemoryLimit limit = with_savings(
      {.part = "room on the GPU",
       .keys = {"hardware.gpu"},
       .message = text("rank {} needs {}{} at one time ({}), {} more than the {} that a run can "
                       "have of {} ({} {}, less {} for CUDA, its libraries and gaps){}",
                       most.rank,
                       report.peaks_counted == Counted::ByThePlanner ? "about " : "",
                       in_words(most.peak_total_bytes),
                       parts_text(most.at_peak.bytes),
                       in_words(lacking.device),
                       in_words(device.bytes()),
                       device.name,
                       device.of,
                       in_words(device.memory_bytes),
                       in_words(device.reserved_bytes),
                       not_counted_text(report.forecast)),
       .fix = {}},
      report);
  limit.ways.push_back(basis_text(report));
  return finished(std::move(limit));
}

MemoryLimit cores_limit(const MemoryReport& report, const Overrun& lacking) {
  const HostRoom& host = *report.room.host;
  const train::PredictedMemory& most = measure::deciding_stage(report.forecast, report.room);
  MemoryLimit limit = with_savings(
      {.part = "room on this machine",
       .keys = {},
       .message = text("{} {} (rank {}: {}), {} more than the {} that this machine has free{}",
                       ranks_text(host.ranks),
                       in_words(measure::host_need(report.forecast, host)),
                       most.rank,
                       parts_text(most.at_peak.bytes),
                       in_words(lacking.host),
                       in_words(host.bytes),
                       not_counted_text(report.forecast)),
       .fix = {}},
      report);
  limit.ways.push_back(basis_text(report));
  return finished(std::move(limit));
}

// True if the run fits without the copies of asynchronous saves.
bool fits_without_copies(const MemoryReport& report) {
  measure::MemoryForecast then = report.forecast;
  then.snapshots.clear();
  return measure::overrun(then, report.room).is_none();
}

// Advice on the share of optimizer state that fits in host memory. If the GPU is judged too, a fit
// for both was searched. The text then says that this share is not a fit.
std::string less_offload_text(const MemoryReport& report, double fraction) {
  if (!report.room.device) {
    return fraction > 0 ? text("use optimizer.optimizer_offload_fraction={:.2f} or less", fraction)
                        : "leave out optimizer.optimizer_cpu_offload";
  }
  const std::string with = fraction > 0
                               ? text("with optimizer.optimizer_offload_fraction={:.2f}", fraction)
                               : "without optimizer.optimizer_cpu_offload";
  return with + " host memory has room and the GPU has not" +
         (report.savings ? ", with none of the savings" : "");
}

// Adds users of host memory on GPU ranks, with the key that reduces each.
void add_host_ways(const MemoryReport& report,
                   const config::Config& config,
                   std::vector<std::string>& ways) {
  const measure::TooLarge run{.asked = config, .now = report.forecast, .room = report.room};
  const std::optional<double> fraction = measure::fraction_with_room(run);
  if (fraction && !report.fit) ways.push_back(less_offload_text(report, *fraction));
  if (config.model.fine_grained_activation_offloading && !report.fit) {
    ways.push_back(
        "offload fewer layers (runtime.offload_layers_share) or modules (model.offload_modules): "
        "the GPU keeps them then");
  }
  if (report.forecast.snapshots.empty()) return;
  ways.push_back(fits_without_copies(report) ? "checkpoint.async_save=false alone makes it fit"
                                             : "use checkpoint.async_save=false");
}

MemoryLimit beside_limit(const MemoryReport& report,
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
  Missing missing{.part = "room in host memory",
                  .keys = {"hardware.host_memory_gb"},
                  .message = text("{} {} of host memory (a rank at most {} offloaded, {} copied to "
                                  "be saved), {} more than the {} that a run can have of {}{}",
                                  ranks_text(host.ranks),
                                  in_words(measure::host_need(report.forecast, host)),
                                  in_words(offloaded),
                                  in_words(copies),
                                  in_words(lacking.host),
                                  in_words(host.bytes),
                                  host.name,
                                  not_counted_text(report.forecast)),
                  .fix = {}};
  // If the GPU lacks memory too, its limit has the savings.
  MemoryLimit limit = lacking.device > 0 ? MemoryLimit{.missing = std::move(missing), .ways = {}}
                                         : with_savings(std::move(missing), report);
  add_host_ways(report, config, limit.ways);
  if (!report.fit && report.room.device) limit.ways.push_back(basis_text(report));
  return finished(std::move(limit));
}

}  // namespace

std::string to_text(const MemoryLimit& limit) {
  std::string all = limit.missing.message;
  for (const std::string& way : limit.ways) all += "\n          -> " + way;
  return all;
}

base::Json to_json(const MemoryLimit& limit) {
  const auto cost = [&](double seconds) {
    return limit.step_seconds > 0 ? base::Json(seconds / limit.step_seconds) : base::Json(nullptr);
  };
  base::Json savings = base::Json::array();
  for (const measure::Saving& saving : limit.savings) {
    savings.push_back({{"name", saving.name},
                       {"words", saving.words},
                       {"bytes", saving.bytes},
                       {"cost", cost(saving.seconds)}});
  }
  base::Json json{{"part", limit.missing.part},
                  {"keys", limit.missing.keys},
                  {"message", limit.missing.message},
                  {"fix", limit.missing.fix},
                  {"savings", std::move(savings)},
                  {"fit", nullptr}};
  if (limit.fit) {
    json["fit"] = {{"names", limit.fit->names},
                   {"words", limit.fit->words},
                   {"peak_bytes", limit.fit->peak_bytes},
                   {"cost", cost(limit.fit->seconds)}};
  }
  return json;
}

std::vector<MemoryLimit> memory_limits(const MemoryReport& report, const config::Config& config) {
  const Overrun lacking = measure::overrun(report.forecast, report.room);
  std::vector<MemoryLimit> limits;
  if (lacking.device > 0) limits.push_back(device_limit(report, lacking));
  if (lacking.host > 0) {
    limits.push_back(report.room.host->memory == RanksIn::Host
                         ? cores_limit(report, lacking)
                         : beside_limit(report, config, lacking));
  }
  return limits;
}

std::optional<MemoryLimit> least_limit(const config::Config& config,
                                       const measure::MemoryRoom& room) {
  if (!room.host || room.host->memory == RanksIn::Device) return std::nullopt;
  const std::size_t need = least_need(config, *room.host);
  if (need <= room.host->bytes) return std::nullopt;
  Missing missing{.part = "room on this machine",
                  .keys = {},
                  .message = text("{} at least {} for weights, gradients, optimizer state and "
                                  "activations, and this machine has {} free",
                                  ranks_text(room.host->ranks),
                                  in_words(need),
                                  in_words(room.host->bytes)),
                  .fix = {}};
  return finished({.missing = std::move(missing), .ways = {kSmallerHere}});
}

std::vector<MemoryLimit> limits_of_run(const config::Config& asked,
                                       const config::Config& judged,
                                       const measure::MemoryRoom& room,
                                       const measure::Tell& tell) {
  if (is_countable(judged)) return memory_limits(report_fit(asked, room, tell), judged);
  const std::optional<MemoryLimit> limit = least_limit(judged, room);
  return limit ? std::vector{*limit} : std::vector<MemoryLimit>{};
}

}  // namespace weft::cli
