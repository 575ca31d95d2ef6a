// weft plan --simulate: prices one run and simulates its schedule.
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/plan/plan_line.h"
#include "weft/cli/plan/plan_modes.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/run/start_shapes.h"
#include "weft/cli/terminal/progress.h"
#include "weft/config/dump.h"
#include "weft/measure/memory/memory_forecast.h"
#include "weft/measure/runs/counted_step.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/run_hardware.h"
#include "weft/plan/order/auto_order.h"
#include "weft/plan/price/price.h"
#include "weft/plan/price/short_step.h"
#include "weft/plan/price/simulated_run.h"
#include "weft/rules/missing.h"
#include "weft/rules/validate.h"
#include "weft/trace/chrome/chrome.h"

namespace weft::cli {
namespace {

// nullopt: one process cannot hold the schedule, even of the shortest step.
std::optional<plan::SimulatedRun> simulated(const config::Config& scheduled,
                                            const config::Config& priced,
                                            const plan::Hardware& hardware,
                                            const plan::Routing& routing) {
  const std::int64_t few =
      plan::fewest_micro_batches(scheduled.model, plan::micro_batches_of(scheduled));
  if (!rules::schedule_limits(plan::with_micro_batches(scheduled, few)).empty())
    return std::nullopt;
  return plan::simulate_run(scheduled, priced, hardware, routing);
}

std::string text_of(const plan::SimulatedRun& run) {
  return base::text(
      "schedule    {} on the clock with every node of {} of {}, as a trace would show it\n",
      plan::time_text(run.step_ms),
      run.shortened.shown,
      base::counted(run.shortened.micro_batches, "micro-batch"));
}

// Relative difference up to which price and simulation agree.
constexpr double kNearSteps = 0.03;

// Costs in the price that the schedule lacks; empty: they agree. Without launches they do.
std::string difference_text(const plan::Price& price, const plan::SimulatedRun& run) {
  const double more = price.step_ms - run.step_ms;
  if (std::abs(more) <= kNearSteps * price.step_ms) return "";
  return base::text(
      "difference  {} ({:.1f} % of the step): on the clock transfers go on while compute waits for "
      "launches; the\n            price counts both, as measured runs do. Walls of a trace are "
      "those of the clock\n",
      plan::time_text(more),
      100 * more / price.step_ms);
}

// Peak that Weft's engine would count in a dry step (weft memory); nullopt: this build lacks a part
// of the run.
std::optional<measure::MemoryForecast> engine_memory(const config::Config& asked) {
  measure::MemoryForecast forecast = measure::forecast_memory(asked, measure::Priced::No);
  if (!forecast.is_predicted() || !forecast.left_out.empty()) return std::nullopt;
  return forecast;
}

base::Json engine_json(const measure::MemoryForecast& forecast) {
  base::Json json{{"pp_rank", forecast.largest_stage()}, {"total", forecast.peak_bytes()}};
  const train::BytesByTag& bytes = forecast.largest().at_peak.bytes;
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    json[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] = bytes[base::at(tag)];
  }
  return json;
}

std::string engine_text(const measure::MemoryForecast& forecast) {
  std::string parts;
  const train::BytesByTag& bytes = forecast.largest().at_peak.bytes;
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    if (bytes[base::at(tag)] == 0) continue;
    parts += base::text("{}{} {}",
                        parts.empty() ? "" : ", ",
                        tensor::name_of(static_cast<tensor::Tag>(tag)),
                        base::human_bytes(static_cast<double>(bytes[base::at(tag)])));
  }
  return base::text("engine      {} at the peak of pipeline rank {} in Weft's own engine: {}\n",
                    base::human_bytes(static_cast<double>(forecast.peak_bytes())),
                    forecast.largest_stage(),
                    parts);
}

constexpr std::string_view kLeftOut =
    "left out    jitter and stragglers, data loading, checkpoints, congestion between jobs, and "
    "what a program\n            does between steps. What is reserved (context, libraries, what an "
    "allocator cannot use) and what\n            CUDA graphs keep are assumed\n";

}  // namespace

int plan_simulate(const PlanOptions& options) {
  const words::Resolution run = resolve(with_asked_gpu(options));
  print_findings(run);
  if (!options.trace.empty()) {
    base::require_result(options.trace, options.overwrite, "weftSimulated");
  }
  config::Config asked = with_start_shapes(run);
  const plan::Hardware hardware =
      plan::hardware_of_run(asked,
                            chosen_hardware(options.gpu, rules::judge(asked).config),
                            asked_program(options.program));
  const plan::Routing routing = asked_routing(options.imbalance, asked.model);
  const std::vector<plan::AutoOrder> orders = plan::auto_orders(asked, hardware, routing);
  if (!orders.empty()) asked = plan::fastest(orders).config;
  const config::Config scheduled = rules::validate_schedule(asked).config;
  const config::Config priced = rules::judge(asked).config;
  require_products(priced, hardware);
  require_threads(priced, hardware);
  ProgressLine line;
  line.show("the price of the run");
  plan::MemoryBook book(measure::count_step);
  const plan::Price price = plan::price_run(priced, hardware, routing, book);
  line.show("its schedule, node by node");
  const std::optional<plan::SimulatedRun> schedule =
      simulated(scheduled, priced, hardware, routing);
  line.show("a dry step of Weft's own engine");
  const std::optional<measure::MemoryForecast> engine = engine_memory(asked);
  line.clear();
  if (!options.trace.empty()) {
    if (!schedule) {
      throw base::ConfigError(
          "the schedule has more nodes than one process holds: no trace is "
          "written; use fewer micro-batches or layers");
    }
    base::write_whole(options.trace, [&](const base::Append& append) {
      trace::write_simulated_chrome(schedule->timelines,
                                    config::to_yaml(asked),
                                    schedule->shortened,
                                    append);
    });
  }
  if (options.run.format == Format::Json) {
    base::Json json = plan::to_json(price);
    json["gpu"] = hardware.name;
    json["program"] = plan::word(hardware.program);
    if (!orders.empty()) json["orders"] = plan::to_json(orders);
    if (engine) json["engine_memory_bytes"] = engine_json(*engine);
    if (schedule) {
      json["schedule"] = {{"step_ms", schedule->step_ms},
                          {"difference_ms", price.step_ms - schedule->step_ms},
                          {"micro_batches", schedule->shortened.micro_batches},
                          {"simulated_micro_batches", schedule->shortened.shown}};
    }
    print_json(json);
  } else {
    print_text(base::text("{} on {} ({}), {}\n",
                          name_of_run(run, run.config),
                          hardware.name,
                          hardware.summary,
                          plan::program_text(hardware)) +
               (orders.empty() ? "" : plan::to_text(orders)) + plan::to_text(price) +
               (schedule ? text_of(*schedule) + difference_text(price, *schedule) : "") +
               (engine ? engine_text(*engine) : "") + std::string(kLeftOut));
  }
  return price.memory.fits() ? kGood : kFailed;
}

}  // namespace weft::cli
