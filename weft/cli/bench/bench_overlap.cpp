// weft bench overlap: share of communication hidden under compute, and its prediction.
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/bench/overlap_report.h"
#include "weft/cli/output.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/picture_file.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/measure.h"
#include "weft/grid/grid.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

constexpr const char* kBenchOverlap = "bench overlap";
// In the object of costs, which readers take its "ranks" of.
constexpr const char* kCostsMark = "\"by\": \"weft bench overlap\"";

struct OverlapOptions {
  RunArguments run{.default_recipe = "overlap_bench"};
  measure::BenchedKind kind = measure::BenchedKind::Ep;
  std::optional<int> rounds;
  std::vector<double> shares;
  std::string svg, costs, schedule;
  base::Overwrite overwrite = base::Overwrite::No;
};

// Rounds: bars of dp, tp, pp and cp are single percents of a step in the best round, which takes
// more rounds.
int rounds_of(const OverlapOptions& options) {
  return options.rounds.value_or(options.kind == measure::BenchedKind::Ep ? 5 : 10);
}

// Free links, and the requested ones.
std::vector<measure::FabricTarget> targets_of(const config::Config& config,
                                              const OverlapOptions& options) {
  if (config::are_processes(config.runtime.backend)) {
    throw base::ConfigError(
        base::text("--shares asks for emulated links, and between processes (runtime.backend = {}) "
                   "they are what they are: leave it out, or use threads or loopback",
                   config::word(config.runtime.backend)));
  }
  const bool is_ep = options.kind == measure::BenchedKind::Ep;
  const bool is_alone = config::is_pretended(config.runtime.backend);
  std::vector<measure::FabricTarget> targets{{"free", 0.0}};
  for (const double share : options.shares) {
    targets.push_back(
        {is_ep ? base::text("communication {:.2f} of {}compute",
                            share,
                            is_alone ? "the layers' " : "")
               : base::text("links on which communication should add {:.0f} % to the plain step",
                            share * 100),
         share,
         is_ep ? measure::WireShare::Alone : measure::WireShare::Added});
  }
  return targets;
}

// Emulated links for ranks in one process, real links between processes. One rank alone has links
// to host memory.
std::vector<measure::FabricTarget> targets_of(const config::Config& config,
                                              measure::BenchedKind kind) {
  switch (config.runtime.backend) {
    case config::CommBackend::Threads:
      if (kind != measure::BenchedKind::Ep) {
        return {{"free", 0.0},
                {"links on which communication should add 30 % to the plain step",
                 0.3,
                 measure::WireShare::Added}};
      }
      return {{"free", 0.0},
              {"communication a quarter of compute", 0.25},
              {"communication as long as compute", 0.98}};
    case config::CommBackend::Loopback:
      return {{"free", 0.0},
              {"host link, as it is", std::nullopt},
              {"communication 0.6 of the layers' compute", 0.6},
              {"communication as long as the layers' compute", 0.98}};
    case config::CommBackend::Mpi:
    case config::CommBackend::Nccl:
    case config::CommBackend::Fake:  // refused below
      break;
  }
  return {{"network, as it is", std::nullopt}};
}

// Rejects keys that the bench sets itself.
void check(const config::Config& config, measure::BenchedKind kind) {
  if (config.runtime.backend == config::CommBackend::Fake) {
    throw base::ConfigError(
        "bench overlap needs bytes that travel: set runtime.backend to threads or mpi, or to "
        "loopback for one rank alone");
  }
  if (config.runtime.backend == config::CommBackend::Loopback && kind != measure::BenchedKind::Ep) {
    throw base::ConfigError(
        base::text("--mode {} with runtime.backend = loopback: one rank alone stands for all in "
                   "--mode ep only; use runtime.backend=threads",
                   measure::word(kind)));
  }
  const std::int64_t stages = config.model.pipeline_model_parallel_size;
  if (config.runtime.backend == config::CommBackend::Loopback && stages > 1) {
    throw base::ConfigError(
        base::text("model.pipeline_model_parallel_size = {} with runtime.backend = loopback: one "
                   "rank stands for all of bench overlap, and stages are not alike; use 1, or "
                   "runtime.backend=threads",
                   stages));
  }
  for (const config::Field& field : config::fields()) {
    const bool changed =
        field.key.starts_with("fabric.") && field.get(config) != field.get(config::Config());
    if (!changed) continue;
    throw base::ConfigError(
        base::text("bench overlap sets the links itself: leave {} out", field.key));
  }
  if (!config.runtime.schedule.empty()) {
    throw base::ConfigError("bench overlap sets the orders itself: leave runtime.schedule out");
  }
}

// Warns of ranks that share a core or a GPU, which distorts times.
void warn_of_shared_hardware(const config::Config& config) {
  const bool alone = config::is_pretended(config.runtime.backend);
  const std::int64_t ranks = alone ? 1 : derive::layout_of(config).world;
  if (config.runtime.device == config::DeviceKind::Cuda) {
    if (config.runtime.backend != config::CommBackend::Threads || ranks == 1) return;
    print_warning(
        "ranks that are threads share one card: compute of one runs beside that of others");
    return;
  }
  const auto cores = static_cast<std::int64_t>(base::usable_cores().size());
  if (config.runtime.pin_ranks && ranks <= cores) return;
  print_warning(
      "figures mean something with a core for each rank, and runtime.pin_ranks=true to keep it "
      "there");
}

// The default recipe has a layout per kind; the recipe itself is the experts' layout.
RunArguments arguments_of(const OverlapOptions& options) {
  RunArguments arguments = options.run;
  if (options.kind != measure::BenchedKind::Ep) {
    arguments.default_recipe += base::text("_{}", measure::word(options.kind));
  }
  return arguments;
}

void warn(const words::Resolution& run,
          const std::vector<measure::OverlapOrder>& orders,
          measure::BenchedKind kind) {
  warn_of_shared_hardware(orders.front().config);
  for (const auto* warnings : {&run.warnings, &orders.back().warnings}) {
    for (const config::Finding& warning : *warnings) print_warning(config::to_text(warning));
  }
  if (orders.size() > 1) return;
  print_warning(
      base::text("no overlap of {} communication is built for this run: only the plain order is "
                 "measured",
                 measure::word(kind)));
}

int run_overlap(const OverlapOptions& options) {
  const words::Resolution run = resolve(arguments_of(options));
  config::Config asked = run.config;
  follow_launcher(run, asked);
  rules::validate(asked);
  const std::vector<measure::OverlapOrder> orders =
      measure::overlap_orders(asked, options.kind, options.schedule);
  check(asked, options.kind);
  const config::Config& config = orders.front().config;
  if (launcher_rank() == 0) {
    if (!options.svg.empty()) require_picture(options.svg, options.overwrite, kBenchOverlap);
    if (!options.costs.empty()) {
      base::require_result(options.costs, options.overwrite, kCostsMark);
    }
  }
  if (launcher_rank() == 0) warn(run, orders, options.kind);
  ProgressLine line;
  const measure::OverlapBench bench =
      measure::bench_overlap({.orders = orders,
                              .targets = options.shares.empty() ? targets_of(config, options.kind)
                                                                : targets_of(config, options),
                              .rounds = rounds_of(options),
                              .progress = progress_on(line, "step"),
                              .stop = &catch_interrupts(),
                              .process = this_process(options.run.format)});
  line.clear();
  if (!bench.is_rank_zero) return kGood;
  if (bench.interrupted) return stopped_bench(options.run.format);
  // Before the report: with --json a write error is a single object.
  if (!options.svg.empty()) write_picture(options.svg, to_svg(bench), kBenchOverlap);
  if (!options.costs.empty()) {
    const std::vector<trace::Timeline>& plain = bench.fabrics.back().runs.front().timelines;
    std::string costs = exec::sim::print(exec::sim::measure(plain));
    base::write_whole(options.costs, costs.insert(1, base::text("\n {},", kCostsMark)));
  }
  const std::vector<FabricReport> reports = report_of(orders, options.kind, bench);
  const grid::Grid grid(derive::layout_of(config));
  report::Document document;
  document.line(
      base::text("{} ({}{}), {}, {} of {} of each order, in turn",
                 base::counted(derive::layout_of(config).world, "rank"),
                 config::word(config.runtime.backend),
                 config::is_pretended(config.runtime.backend) ? ", one runs" : "",
                 base::counted(derive::micro_batches(config.train, grid.dp()), "micro-batch"),
                 options.kind == measure::BenchedKind::Ep ? "median" : "the best",
                 base::counted(rounds_of(options), "step")));
  document.section("") = document_of(reports);
  const int code = end_bench(options.run.format, document);
  return std::ranges::all_of(reports, is_judged) ? code : kFailed;
}

// Replaces the name of a kind by its number; returns an error.
std::string number_of_kind(std::string& name) {
  for (const measure::BenchedKind kind : measure::kBenchedKinds) {
    if (name != measure::word(kind)) continue;
    name = std::to_string(static_cast<int>(kind));
    return "";
  }
  return base::text("'{}' is no kind of communication: ep, dp, tp, pp or cp", name);
}

}  // namespace

void add_bench_overlap(CLI::App& bench, Action& chosen) {
  CLI::App* overlap = bench.add_subcommand(
      "overlap",
      "one step in several orders (plain, overlapped, more so) of one kind of communication, on "
      "several fabrics; without a recipe, overlap_bench");
  auto options = std::make_shared<OverlapOptions>();
  add_run_arguments(*overlap, options->run, "weft bench overlap --svg overlap.svg");
  overlap
      ->add_option("--mode",
                   options->kind,
                   "which communication: of experts (ep), data (dp), tensor (tp), "
                   "pipeline (pp) or context (cp) parallelism; without a recipe, of two ranks, "
                   "overlap_bench_MODE")
      ->transform(CLI::Validator(number_of_kind, ""))
      ->type_name("ep|dp|tp|pp|cp")
      ->default_str("ep");
  within(
      1,
      1000,
      overlap->add_option("--rounds", options->rounds, "timed steps of each order on each fabric"))
      ->default_str("5, and 10 with dp, tp, pp or cp");
  comma_list(within(
      0.01,
      10,
      overlap->add_option("--shares",
                          options->shares,
                          "emulated links on which communication takes these shares of compute "
                          "alone (dp, tp, pp and cp: adds them to the plain step), as in 0.4,0.8; "
                          "beside free links, instead of the usual ones")));
  overlap
      ->add_option("--schedule",
                   options->schedule,
                   "folder of schedule files, as `weft schedule --improve --write` leaves: one "
                   "order more, beside those of the bench")
      ->check(CLI::ExistingDirectory);
  add_overwrite(*overlap, options->overwrite);
  overlap->add_option("--svg", options->svg, "file for a picture of the timelines");
  overlap->add_option("--costs",
                      options->costs,
                      "file for what the plain order's nodes cost on the last fabric, as `weft "
                      "schedule --costs` reads it");
  on_chosen(*overlap, chosen, std::move(options), run_overlap);
}

}  // namespace weft::cli
