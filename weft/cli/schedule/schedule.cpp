// weft schedule: the order of a step, before a run.
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/run/picture_file.h"
#include "weft/cli/run/start_shapes.h"
#include "weft/cli/schedule/schedule_costs.h"
#include "weft/cli/schedule/schedule_report.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/timelines.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/simulated_step.h"
#include "weft/rules/validate.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/text/plan_files.h"
#include "weft/schedule/text/text.h"

namespace weft::cli {
namespace {

namespace sim = exec::sim;
using schedule::RankPlan;

constexpr const char* kSchedule = "schedule";
// Limit of spans for the exposure: more would take seconds.
constexpr std::size_t kMostSpans = 100000;

struct ScheduleOptions {
  RunArguments run;
  std::optional<int> text;  // prints only this pipeline rank
  std::string write, read, svg;
  CostOptions costs;
  std::vector<double> svg_window;  // ms of the step, from and to; empty: all
  bool improve = false;
  int tries = 400;
  double memory_limit_mb = 0;  // 0: not given
  base::Overwrite overwrite = base::Overwrite::No;
};

// Replaces the given order by the found one; nullopt: interrupted.
std::optional<plan::Improvement> improve_plans(const ScheduleOptions& options,
                                               const ScheduleCosts& priced,
                                               const config::Config& config,
                                               const grid::Grid& grid,
                                               std::vector<RankPlan>& plans) {
  const sim::CostTable costs = priced.of(config, grid, plans);
  ProgressLine line;
  const std::atomic<bool>& stop = catch_interrupts(Caught::All, std::nullopt, kEndingSearch);
  const plan::Calibration& calibration = priced.calibration();
  plan::ImproveRequest request{.plans = plans,
                               .costs = costs,
                               .overheads = plan::overheads_of(calibration),
                               .contention = plan::contention_of(config, calibration),
                               .load = plan::expected_load(config, plans.front().anatomy.flow),
                               .tries = options.tries,
                               .goes_on = [&](int tried) {
                                 line.show(base::text("{} order {}/{}",
                                                      bar(double(tried) / options.tries, 24),
                                                      tried,
                                                      options.tries));
                                 return !stop.load();
                               }};
  if (options.memory_limit_mb > 0) {
    request.memory_limit = static_cast<std::int64_t>(options.memory_limit_mb * 1e6);
  }
  plan::Improvement found = plan::improve(request);
  line.clear();
  if (stop.load()) return std::nullopt;
  plans = found.plans;
  return found;
}

SimulatedStep simulate(const ScheduleCosts& priced,
                       const config::Config& config,
                       const grid::Grid& grid,
                       const std::vector<RankPlan>& plans) {
  const plan::Calibration& calibration = priced.calibration();
  SimulatedStep simulated{.step = plan::simulated_step(plans,
                                                       priced.of(config, grid, plans),
                                                       plan::overheads_of(calibration)),
                          .result = {},
                          .exposure = {},
                          .costs = priced.text(config)};
  std::size_t nodes = 0;
  for (const RankPlan& plan : plans) nodes += plan.training.entries.size();
  simulated.result = sim::simulate(simulated.step, plan::contention_of(config, calibration));
  if (2 * nodes <= kMostSpans) {
    simulated.exposure = trace::analyse(sim::timelines_of(simulated.step, simulated.result));
  }
  return simulated;
}

// Folder of graph files, if given; empty: plan them.
std::string folder_of(const ScheduleOptions& options, const config::Config& config) {
  return options.read.empty() ? config.runtime.schedule : options.read;
}

int print_graph(const std::vector<RankPlan>& plans, int pp_rank) {
  if (pp_rank < 0 || static_cast<std::size_t>(pp_rank) >= plans.size()) {
    throw base::ConfigError(
        base::text("--text {}: pipeline ranks are 0 to {}", pp_rank, plans.size() - 1));
  }
  print_text(schedule::print(plans[static_cast<std::size_t>(pp_rank)].training));
  return kGood;
}

std::optional<PictureWindow> asked_window(const ScheduleOptions& options) {
  if (options.svg_window.empty()) return std::nullopt;
  const double from = options.svg_window.front(), to = options.svg_window.back();
  if (from >= to) {
    throw base::ConfigError(
        base::text("--svg-window {:g} {:g}: the second time is to be later", from, to));
  }
  return PictureWindow{.from_ms = from, .to_ms = to};
}

void require_inside(const std::optional<PictureWindow>& asked, const SimulatedStep& simulated) {
  const double step_ms = simulated.result.step_seconds() * 1e3;
  if (!asked || asked->from_ms < step_ms) return;
  throw base::ConfigError(
      base::text("--svg-window {:g} {:g}: the step is over after {:.4g} ms: begin before that",
                 asked->from_ms,
                 asked->to_ms,
                 step_ms));
}

void leave_files(const ScheduleOptions& options,
                 const std::optional<PictureWindow>& asked,
                 const ScheduleReport& report) {
  if (!report.valid()) return;
  require_inside(asked, *report.simulated);
  if (!options.write.empty()) schedule::write_orders(options.write, report.plans);
  if (options.svg.empty()) return;
  const PictureWindow window = picture_window(*report.simulated, asked);
  if (window.is_cut) {
    print_warning(
        base::text("{} shows {:.4g} to {:.4g} ms of the step: a picture of more nodes is "
                   "opened by no browser; --svg-window FROM TO (ms) chooses the part",
                   options.svg,
                   window.from_ms,
                   window.to_ms));
  }
  write_picture(options.svg, to_svg(report, window), kSchedule);
}

int run_schedule(const ScheduleOptions& options) {
  const std::optional<PictureWindow> asked = asked_window(options);
  const words::Resolution run = resolve(options.run);
  print_findings(run);
  if (!options.svg.empty()) require_picture(options.svg, options.overwrite, kSchedule);
  const config::Config asked_for = with_start_shapes(run);
  const rules::Verdict verdict = rules::validate_schedule(asked_for);
  const config::Config& config = verdict.config;
  print_findings(verdict);
  for (int pp = 0; pp < config.model.pipeline_model_parallel_size && !options.write.empty(); ++pp) {
    base::require_free(schedule::file_of(options.write, pp), options.overwrite);
  }
  const ScheduleCosts priced(options.costs, config);
  const grid::Grid grid(derive::layout_of(config));
  ProgressLine line;  // a step of a large model has millions of nodes
  line.show(base::text("writing down the order of {}", base::counted(grid.pp(), "pipeline rank")));
  std::vector<RankPlan> plans = schedule::plan_step(config, grid);
  const std::string folder = folder_of(options, config);
  if (!folder.empty()) schedule::read_orders(folder, plans);
  std::optional<plan::Improvement> improvement;
  if (options.improve) {
    const std::vector<std::string> complaints =
        folder.empty() ? schedule::verify_plan(plans) : schedule::verify_orders(folder, plans);
    if (complaints.empty()) {
      improvement = improve_plans(options, priced, config, grid, plans);
      if (!improvement) return interrupted_code();
    }
  }
  if (options.text) {
    line.clear();
    return print_graph(plans, *options.text);
  }
  line.show("proving that the orders fit together");
  ScheduleReport report{.config = config,
                        .grid = grid,
                        .plans = plans,
                        .source = folder,
                        .complaints = folder.empty() ? schedule::verify_plan(plans)
                                                     : schedule::verify_orders(folder, plans),
                        .simulated = {},
                        .improvement = std::move(improvement)};
  if (report.valid()) {
    line.show("simulating the step");
    report.simulated = simulate(priced, config, grid, plans);
    for (const RankPlan& plan : plans) {
      report.activation_bytes.push_back(
          schedule::activation_mark(plan.training,
                                    plan.anatomy,
                                    plan::expected_load(config, plan.anatomy.flow)));
    }
    if (grid.pp() > 1 && 2 * nodes_of(report) <= kMostSpans) {
      line.show("simulating the other orders of a pipeline");
      report.orders = plan::compare_pipelines_at(asked_for, [&](const auto&... priced_run) {
        return priced.by_rates(priced_run...);
      });
    }
  }
  line.clear();
  leave_files(options, asked, report);
  switch (options.run.format) {
    case Format::Text:
      print_text(to_text(report));
      break;
    case Format::Json:
      print_json(to_json(report));
      break;
  }
  return report.valid() ? kGood : kFailed;
}

void add_file_options(CLI::App& command, ScheduleOptions& options) {
  CLI::Option* text = command.add_option(
      "--text",
      options.text,
      "print the schedule of this pipeline rank (0), and nothing else; as it is, not verified");
  text->expected(0, 1)->default_str("0")->type_name("[RANK]")->excludes("--json");
  text->excludes(command.add_option("--write",
                                    options.write,
                                    "folder for the schedules: rank0.txt, rank1.txt, ..."));
  add_overwrite(command,
                options.overwrite,
                "replace a picture or schedules that are there already");
  command.add_option("--read", options.read, "folder of schedules to look at instead");
  CLI::Option* svg =
      command.add_option("--svg", options.svg, "file for a picture of the simulated step");
  text->excludes(svg);
  within(
      0,
      1e12,
      command.add_option("--svg-window",
                         options.svg_window,
                         "the part of the step that the picture shows, in ms from its beginning"))
      ->expected(2)
      ->type_name("FROM TO")
      ->needs(svg);
}

void add_cost_options(CLI::App& command, CostOptions& options) {
  CLI::Option* costs =
      command
          .add_option("--costs", options.costs, "file of measured costs, instead of nominal ones")
          ->check(CLI::ExistingFile);
  CLI::Option* calibration =
      command
          .add_option(
              "--calibration",
              options.calibration,
              "file of `weft calibrate`: costs by what this machine was measured to take; with "
              "--costs, only waits and how compute slows down beside communication")
          ->check(CLI::ExistingFile);
  within(1e6,
         1e21,
         command.add_option(
             "--flops",
             options.flops_per_second,
             "nominal FLOP/s of a rank; default: 1e12, or as a plan prices the run's GPU"))
      ->excludes(costs)
      ->excludes(calibration);
  within(1e-6,
         1e6,
         command.add_option("--gbps",
                            options.gb_per_second,
                            "nominal GB/s (1e9 bytes) of a rank's link, where fabric.* has none; "
                            "default: 50, or the GPU's"))
      ->excludes(costs)
      ->excludes(calibration);
  add_program_option(command, options.program)->excludes(costs)->excludes(calibration);
}

void add_improve_options(CLI::App& command, ScheduleOptions& options) {
  CLI::Option* improve = command.add_flag(
      "--improve",
      options.improve,
      "look for a shorter order, from the one that the run has; --write keeps what is found");
  within(1, 1000000, command.add_option("--tries", options.tries, "orders to try"))
      ->capture_default_str()
      ->needs(improve);
  within(1e-3,
         1e9,
         command.add_option("--memory-limit",
                            options.memory_limit_mb,
                            "MB (1e6 bytes) of kept activations that an order may have; without "
                            "it, those of the given order and of one micro-batch more"))
      ->needs(improve);
}

}  // namespace

void add_schedule(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "schedule",
      "print, verify and simulate the order of a step; no rank runs, so any layout will do");
  auto options = std::make_shared<ScheduleOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft schedule tiny comm_overlap.overlap_moe_expert_parallel_comm=true --svg "
                    "step.svg");
  add_file_options(*command, *options);
  add_cost_options(*command, options->costs);
  add_improve_options(*command, *options);
  on_chosen(*command, chosen, std::move(options), run_schedule);
}

}  // namespace weft::cli
