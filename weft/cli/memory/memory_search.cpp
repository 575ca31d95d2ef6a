#include "weft/cli/memory/memory_search.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/derive/gpu.h"
#include "weft/measure/memory/less_offload.h"
#include "weft/measure/memory/memory_estimate.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/hardware/run_hardware.h"

namespace weft::cli {
namespace {

using measure::MemoryForecast;
using measure::Saving;

constexpr std::size_t kNamedSavings = 2;
constexpr double kTrifle = 0.02;
// Share of the room below which an estimate suffices; larger runs are counted.
constexpr double kFarBelow = 0.85;
// Share of the room that an estimated fit leaves free.
constexpr double kEstimateError = 0.02;
// Layers times micro-batches of a dry step of some tenths of a second, and of one that may run for
// every saving.
constexpr std::int64_t kFewLayers = 96, kVeryFewLayers = 16;
// Longest dry step, in layers times micro-batches, that is run for every saving if no formula knows
// the run: some seconds in total.
constexpr std::int64_t kCountedLayers = 256;

// Savings that free a significant part of the missing bytes; all if none does.
std::vector<Saving> worth_naming(const measure::TooLarge& run, const std::vector<Saving>& helpful) {
  const measure::Overrun lacking = measure::overrun(run.now, run.room);
  const double least =
      kTrifle * static_cast<double>(lacking.device > 0 ? lacking.device : lacking.host);
  std::vector<Saving> named;
  std::ranges::copy_if(helpful, std::back_inserter(named), [&](const Saving& saving) {
    return static_cast<double>(saving.bytes) > least;
  });
  return named.empty() ? helpful : named;
}

void look_for_fit(const config::Config& asked,
                  const measure::MemoryRoom& room,
                  const measure::Tell& tell,
                  const measure::Forecaster& forecast,
                  MemoryReport& report) {
  const measure::TooLarge run{.asked = asked, .now = report.forecast, .room = room};
  const std::vector<Saving> helpful = measure::helpful_savings(run, *report.savings);
  report.cheapest = measure::apart(asked, worth_naming(run, helpful), kNamedSavings);
  if (measure::is_hopeless(report.forecast, room)) return;
  // Less offload costs no time and changes no bit, but needs more device memory.
  const bool has_device_room = measure::overrun(report.forecast, room).device == 0;
  if (has_device_room) report.fit = measure::fit_by_less_offload(run, tell, forecast);
  if (!report.fit && has_device_room) {
    report.fit = measure::fit_beside_less_offload(run, tell, forecast);
  }
  if (!report.fit) report.fit = measure::find_fit(run, helpful, tell, forecast);
  if (!report.fit && !has_device_room) {
    report.fit = measure::fit_beside_less_offload(run, tell, forecast);
  }
}

// Planner's numbers for the GPU under the program; nullopt: no file.
std::optional<plan::Hardware> hardware_of(const config::Config& config,
                                          std::optional<plan::Program> asked) {
  if (!config.hardware.gpu) return std::nullopt;
  const std::filesystem::path folder = hardware_folder();
  const std::string name(config::word(*config.hardware.gpu));
  const std::vector<std::string> known = plan::known_hardware(folder);
  if (std::ranges::find(known, name) == known.end()) return std::nullopt;
  const plan::Hardware file = plan::find_hardware(folder, name);
  if (asked && !plan::has_rates_of(file, *asked))
    asked = std::nullopt;  // the report names the program
  plan::Hardware hardware = plan::hardware_of_run(config, file, asked);
  // Weft's engine keeps no such gradients.
  if (asked != plan::Program::MegatronBridge) hardware.work.keeps_dummy_gradients = false;
  return hardware;
}

// An unnamed GPU has no price.
std::string nominal_costs_text(const config::Config& config) {
  const config::HardwareConfig& hardware = config.hardware;
  const bool is_nameless = !hardware.gpu && hardware.device_name.empty();
  if (is_nameless && config.runtime.device == config::DeviceKind::Cuda) return "";
  const std::string rates = plan::describe(plan::rates_of(hardware));
  if (!hardware.gpu) return rates;
  const derive::GpuFacts gpu = derive::gpu_facts(hardware);
  if (!gpu.tflops) {
    return base::text(
        "{} (the rates of {} are not known: these are of processor cores, and times "
        "say little)",
        rates,
        gpu.name);
  }
  return base::text(
      "{} (as advertised, of which products reach about {:.0f} %; of the last two, copies reach "
      "{:.0f} % and the host's cores {:.0f} %, and are priced as so much faster)",
      rates,
      100 * derive::kReachedOfProducts,
      100 * derive::kReachedOfHostLink,
      100 * derive::kReachedOfHostMemory);
}

// Hardware for an estimate; nullopt: the room is not a GPU's, or the order comes from a file.
std::optional<plan::Hardware> estimator_of(const config::Config& asked,
                                           const measure::MemoryRoom& room,
                                           std::optional<plan::Program> program) {
  if (!room.device || !asked.runtime.schedule.empty()) return std::nullopt;
  return hardware_of(asked, program);
}

// The program that the report was asked for; nullopt: the usual one has its times.
std::optional<plan::Program> asked_of(const MemoryReport& report) {
  return report.program == report.program_of_times ? report.program_of_times : std::nullopt;
}

// The memory that the planner's formula gives Megatron Bridge.
MemoryReport report_megatron(const config::Config& asked,
                             const measure::MemoryRoom& room,
                             const CountWish& wish,
                             const std::optional<plan::Hardware>& hardware) {
  if (!hardware) {
    throw base::ConfigError(
        "--program=megatron is priced on a GPU that the planner knows, in an order of the config: "
        "name one, as in hardware.gpu=h100, without runtime.schedule");
  }
  if (wish.savings == CountWish::What::Everything) {
    throw base::ConfigError(
        "--count counts steps of Weft's own engine: leave it out, or --program=megatron");
  }
  return {.forecast = measure::estimate_memory(asked, *hardware, measure::Priced::No),
          .room = room,
          .peaks_counted = Counted::ByThePlanner,
          .savings_counted = Counted::ByThePlanner,
          .program = plan::Program::MegatronBridge,
          .program_of_times = plan::Program::MegatronBridge};
}

// True if savings are searched on request only.
bool waits_for_request(const config::Config& asked, const measure::MemoryRoom& room) {
  return !estimator_of(asked, room, {}) && measure::dry_layers(asked) > kCountedLayers;
}

// Forecast of a run with a saving, from models of some of its layers.
MemoryForecast extended(const config::Config& asked, measure::Priced priced) {
  return measure::extend_layers(asked, priced).value_or(MemoryForecast{});
}

// Finds the savings of a long step on CPU cores, which the planner does not know.
void extend_savings(const config::Config& asked, const measure::Tell& tell, MemoryReport& report) {
  report.forecast.step_seconds = extended(asked, measure::Priced::Yes).step_seconds;
  report.costs = base::text("nominal rates, {}", nominal_costs_text(asked));
  report.savings_counted = Counted::ByThePlanner;
  report.savings = measure::find_savings(asked, report.forecast, tell, extended);
  if (!report.fits()) look_for_fit(asked, report.room, tell, extended, report);
}

void estimate_savings(const config::Config& asked,
                      const plan::Hardware& hardware,
                      const measure::Tell& tell,
                      MemoryReport& report) {
  const measure::Forecaster forecast = measure::estimates_beside(asked, report.forecast, hardware);
  report.forecast.step_seconds = forecast(asked, measure::Priced::Yes).step_seconds;
  report.costs = base::text("those of `weft plan` on {}, {}",
                            config::word(*asked.hardware.gpu),
                            plan::program_text(hardware));
  report.savings = measure::find_savings(asked, report.forecast, tell, forecast);
  if (report.fits()) return;
  measure::MemoryRoom room = report.room;
  room.device->reserved_bytes +=
      static_cast<std::size_t>(kEstimateError * static_cast<double>(room.device->bytes()));
  look_for_fit(asked, room, tell, forecast, report);
}

}  // namespace

MemoryReport report_peaks(const config::Config& asked,
                          const measure::MemoryRoom& room,
                          const CountWish& wish,
                          const measure::Tell& tell) {
  using What = CountWish::What;
  const std::optional<plan::Hardware> hardware = estimator_of(asked, room, wish.program);
  if (wish.program == plan::Program::MegatronBridge)
    return report_megatron(asked, room, wish, hardware);
  const bool is_very_quick = measure::dry_layers(asked) <= kVeryFewLayers;
  MemoryReport report{.forecast = {}, .room = room};
  if (wish.savings != What::Everything && waits_for_request(asked, room)) {
    tell("a dry step");
    std::optional<MemoryForecast> longer = measure::extend_layers(asked, measure::Priced::No);
    report.is_extended = longer.has_value();
    report.savings_wait = !report.is_extended;
    const bool is_counted = !longer || wish.ranks == What::Everything;
    report.forecast =
        is_counted ? measure::forecast_memory(asked, measure::Priced::No) : std::move(*longer);
    if (!is_counted) report.peaks_counted = Counted::ByThePlanner;
    return report;
  }
  if (!hardware || wish.savings == What::Everything || is_very_quick) {
    tell("a dry step");
    report.forecast = measure::forecast_memory(asked, measure::Priced::Yes);
    report.costs = nominal_costs_text(asked);
    return report;
  }
  report.savings_counted = Counted::ByThePlanner;
  report.program_of_times = hardware->program;
  tell("a dry step");
  report.forecast = wish.ranks == What::Everything || is_quick_to_count(asked)
                        ? measure::forecast_memory(asked, measure::Priced::No)
                        : measure::count_largest(asked, *hardware);
  return report;
}

void add_savings(const config::Config& asked, const measure::Tell& tell, MemoryReport& report) {
  if (report.savings_wait) return;
  if (report.is_extended) return extend_savings(asked, tell, report);
  const std::optional<plan::Hardware> hardware = estimator_of(asked, report.room, asked_of(report));
  if (hardware && report.savings_counted == Counted::ByThePlanner) {
    estimate_savings(asked, *hardware, tell, report);
    return;
  }
  report.savings = measure::find_savings(asked, report.forecast, tell);
  if (report.fits()) return;
  look_for_fit(asked, report.room, tell, measure::forecast_memory, report);
}

MemoryReport report_fit(const config::Config& asked,
                        const measure::MemoryRoom& room,
                        const measure::Tell& tell) {
  tell("a dry step");
  MemoryReport report{.forecast = measure::forecast_memory(asked, measure::Priced::No),
                      .room = room};
  const bool is_over = report.fits() || measure::is_hopeless(report.forecast, room);
  report.savings_wait = waits_for_request(asked, room);
  if (is_over || report.savings_wait) return report;
  report = report_peaks(asked, room, {}, tell);
  add_savings(asked, tell, report);
  return report;
}

bool is_quick_to_count(const config::Config& asked) {
  return measure::dry_layers(asked) <= kFewLayers;
}

std::optional<MemoryReport> report_quickly(const config::Config& asked,
                                           const config::Config& judged,
                                           const measure::MemoryRoom& room,
                                           const measure::Tell& tell) {
  const std::optional<plan::Hardware> hardware = estimator_of(judged, room, {});
  if (!hardware) {
    if (is_quick_to_count(asked)) return report_fit(asked, room, tell);
    tell("a dry step");
    return MemoryReport{.forecast = measure::forecast_memory(asked, measure::Priced::No),
                        .room = room};
  }
  if (!uses_host_beside(judged)) {
    const MemoryForecast estimate = measure::estimate_memory(asked, *hardware, measure::Priced::No);
    const double room_bytes = static_cast<double>(room.device->bytes());
    const bool is_far = estimate.is_predicted() &&
                        static_cast<double>(estimate.peak_bytes()) < kFarBelow * room_bytes;
    if (is_far) return std::nullopt;
  }
  if (is_quick_to_count(asked)) return report_fit(asked, room, tell);
  MemoryReport report{.forecast = measure::estimate_closely(asked, *hardware),
                      .room = room,
                      .peaks_counted = Counted::ByThePlanner,
                      .savings_counted = Counted::ByThePlanner};
  const bool is_over = !report.forecast.is_predicted() || report.fits() ||
                       measure::is_hopeless(report.forecast, room);
  if (!is_over) estimate_savings(asked, *hardware, tell, report);
  return report;
}

bool is_narrow(const MemoryReport& report) {
  if (!report.room.device || !report.fits()) return false;
  const double peak = static_cast<double>(report.forecast.peak_bytes());
  return peak > (1 - kEstimateError) * static_cast<double>(report.room.device->bytes());
}

measure::Tell shown_on(ProgressLine& line) {
  return [&line, mutex = std::make_shared<std::mutex>()](const std::string& said) {
    const std::lock_guard lock(*mutex);
    line.show("memory: " + said);
  };
}

}  // namespace weft::cli
