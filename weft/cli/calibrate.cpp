// weft calibrate: what nodes cost on the machine at hand, for runs that were not measured.
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/interrupt.h"
#include "weft/cli/launcher.h"
#include "weft/cli/number_range.h"
#include "weft/cli/output.h"
#include "weft/cli/progress.h"
#include "weft/cli/start_model.h"
#include "weft/cli/temporary_folder.h"
#include "weft/derive/derived.h"
#include "weft/measure/perf_run.h"
#include "weft/plan/calibration.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

using base::text;

struct CalibrateOptions {
  RunArguments run;
  std::string out = "calibration.json";
  bool add = false;
  std::int64_t steps = 10;
};

void require_plain(const config::Config& config) {
  if (!derive::fabric_of(config).is_free()) {
    throw base::ConfigError(
        "a calibration is made without emulated links, which come on top where a run has them: "
        "leave fabric.* out");
  }
  if (config::are_processes(config.runtime.backend)) {
    throw base::ConfigError(
        text("runtime.backend = {}: weft calibrate measures ranks of one process: use threads, or "
             "loopback for one rank of many",
             config::word(config.runtime.backend)));
  }
}

plan::Calibration read_calibration(const std::string& file) {
  try {
    return plan::parse_calibration(base::read_text(file));
  } catch (const base::ConfigError& error) {
    throw base::ConfigError(text("{}: {}", file, error.what()));
  }
}

std::string table_of(const plan::Calibration& calibration) {
  std::string all = text("{:<28} {:>10} {:>12}\n", "node", "x nominal", "and us");
  for (const auto& [key, factor] : calibration.nodes) {
    all += text("{:<28} {:>10.4g} {:>12.4g}\n", key, factor.factor, factor.seconds * 1e6);
  }
  return all + text("{:<28} {:>10} {:>12.4g}\n",
                    "a wait between lanes",
                    "",
                    calibration.wake_seconds * 1e6);
}

int run_calibrate(const CalibrateOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("weft calibrate measures one process: run it without mpirun");
  }
  const words::Resolution run = resolve(options.run);
  refuse_foreign_launcher(run);
  print_findings(run);
  const config::Config asked = with_start(run, run.config);
  require_plain(asked);
  base::require_writable(options.out);
  plan::Calibration known;
  if (options.add) known = read_calibration(options.out);
  const rules::JudgedConfig judged =
      rules::validate(measure::perf_config(asked, options.steps)).judged.value();
  const TemporaryFolder folder;
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  const measure::PerfRun measured =
      measure::run_perf({.config = judged,
                         .steps = options.steps,
                         .window = {.start = options.steps / 2},
                         .run_dir = folder.path() / "run",
                         .stop = &stop,
                         .progress = [&](const train::StepRecord& record) {
                           line.show(text("{} step {}/{}",
                                          bar(double(record.iteration) / double(options.steps), 24),
                                          record.iteration,
                                          options.steps));
                         }});
  line.clear();
  if (stop.load() || !measured.steady_ms) return interrupted_code();
  plan::Calibration found =
      plan::calibrate(judged, measured.timelines, measured.steady_ms->mean * 1e-3);
  const double predicted = plan::calibrated_seconds(judged, found);
  // Of what both have seen, the newer one counts.
  for (const auto& [key, factor] : known.nodes) found.nodes.try_emplace(key, factor);
  base::write_whole(options.out, plan::print(found));
  switch (options.run.format) {
    case Format::Text:
      print_text(table_of(found));
      print_text(text("step {:.2f} ms measured, {:.2f} ms by these numbers\nwritten   {}\n",
                      measured.steady_ms->mean,
                      predicted * 1e3,
                      options.out));
      break;
    case Format::Json: {
      base::Json json{{"parameters", base::Json::parse(plan::print(found))},
                      {"step_ms", measured.steady_ms->mean},
                      {"predicted_ms", predicted * 1e3},
                      {"file", options.out}};
      print_json(json);
      break;
    }
  }
  return kGood;
}

}  // namespace

void add_calibrate(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "calibrate",
      "measure what nodes cost on this machine; weft schedule --calibration prices other runs by "
      "it");
  auto options = std::make_shared<CalibrateOptions>();
  add_run_arguments(*command, options->run, "weft calibrate overlap_bench --out=here.json");
  command->add_option("--out", options->out, "file for the calibration")->capture_default_str();
  command->add_flag("--add",
                    options->add,
                    "keep what the file has of nodes that this run does not have");
  within(4, 10000, command->add_option("--steps", options->steps, "to measure"))
      ->capture_default_str();
  on_chosen(*command, chosen, std::move(options), run_calibrate);
}

}  // namespace weft::cli
