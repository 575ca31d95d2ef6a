// weft calibrate: node costs of this machine, for runs without measurements, and a hardware profile
// for weft plan.
#include <cmath>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/perf/calibrate_hardware.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/measure/device/device_timer.h"
#include "weft/measure/runs/calibration_run.h"
#include "weft/plan/hardware/calibration.h"
#include "weft/plan/hardware/calibration_text.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

using base::text;

struct CalibrateOptions {
  RunArguments run;
  std::string out = "calibration.json";
  bool add = false;
  std::int64_t steps = 10;
  HardwareOptions hardware;
  base::Overwrite overwrite = base::Overwrite::No;
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
  std::string all = plan::describe(calibration.rates);
  all += text("{:<28} {:>9} {:>9} {:>9} {:>9} {:>12}\n",
              "x what the rates say",
              "products",
              "attention",
              "other",
              "exchange",
              "and us");
  for (const auto& [kind, factor] : calibration.nodes) {
    all += text("{:<28} {:>9.3g} {:>9.3g} {:>9.3g} {:>9.3g} {:>12.4g}\n",
                kind,
                factor.product,
                factor.attention,
                factor.memory,
                factor.link,
                factor.seconds * 1e6);
  }
  return all;
}

void warn_of_doubts(const plan::Calibration& calibration, const std::string& file) {
  for (const std::string& doubt : plan::calibration_doubts(calibration)) {
    print_warning(
        text("{}: {}: was the machine busy with something else? Measure again when it is not",
             file,
             doubt));
  }
}

// Warns of a profile that misses the run it was made from.
void warn_where_far(const WrittenHardware& written, double measured_seconds) {
  constexpr double kFar = 0.25;
  const double over = written.planned_seconds / measured_seconds - 1;
  if (std::abs(over) <= kFar) return;
  print_warning(
      text("with {} weft plan prices this very run {:+.0f} % off: was the machine busy with "
           "something else? Measure again when it is not",
           written.file,
           100 * over));
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
  base::require_result(options.out, options.overwrite, "weft calibration");
  HardwareOptions wanted = options.hardware;
  wanted.overwrite = options.overwrite;
  plan::TellsRest rest;
  if (wanted.is_wanted()) rest = tells_rest(wanted, rules::judge(asked).config);
  plan::Calibration known;
  if (options.add) known = read_calibration(options.out);
  const TemporaryFolder folder;
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  std::optional<measure::CalibrationResult> result =
      measure::run_calibration({.config = asked,
                                .steps = options.steps,
                                .folder = folder.path(),
                                .stop = &stop,
                                .progress = [&](const std::string& what, std::int64_t step) {
                                  line.show(text("{} {}, step {}/{}",
                                                 bar(double(step) / double(options.steps), 24),
                                                 what,
                                                 step,
                                                 options.steps));
                                }});
  line.clear();
  if (!result) return interrupted_code();
  plan::Calibration& found = result->calibration;
  const config::Config judged = rules::judge(asked).config;
  const double predicted = plan::calibrated_step(judged, found).seconds;
  std::optional<WrittenHardware> profile;
  try {
    const auto note = [&](const std::string& what) { line.show("hardware: " + what); };
    if (wanted.is_wanted()) profile = write_hardware(wanted, rest, judged, found, note, stop);
  } catch (const measure::Stopped&) {
    return interrupted_code();
  }
  line.clear();
  if (profile) warn_where_far(*profile, result->step_seconds);
  // The newer factor wins for kinds in both.
  for (const auto& [key, factor] : known.nodes) found.nodes.try_emplace(key, factor);
  warn_of_doubts(found, options.out);
  base::write_whole(options.out, plan::print(found));
  switch (options.run.format) {
    case Format::Text:
      print_text(table_of(found));
      print_text(text("step {:.2f} ms measured, {:.2f} ms by these numbers\nwritten   {}\n",
                      result->step_seconds * 1e3,
                      predicted * 1e3,
                      options.out));
      if (profile) print_text(to_text(*profile, result->step_seconds));
      break;
    case Format::Json: {
      base::Json json{{"parameters", base::parse_json(plan::print(found))},
                      {"step_ms", result->step_seconds * 1e3},
                      {"predicted_ms", predicted * 1e3},
                      {"file", options.out}};
      if (result->overlapped_seconds) json["overlapped_ms"] = *result->overlapped_seconds * 1e3;
      if (profile) json["hardware"] = to_json(*profile);
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
      "it, and weft plan --gpu by the profile of --hardware");
  auto options = std::make_shared<CalibrateOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft calibrate overlap_bench --out=here.json\n"
                    "Example: weft calibrate overlap_bench --hardware=here.yaml");
  add_overwrite(*command, options->overwrite);
  command->add_option("--out", options->out, "file for the calibration")->capture_default_str();
  command->add_flag("--add",
                    options->add,
                    "keep what the file has of nodes that this run does not have");
  within(4, 10000, command->add_option("--steps", options->steps, "to measure"))
      ->capture_default_str();
  CLI::Option* hardware =
      command
          ->add_option("--hardware",
                       options->hardware.file,
                       "file for a hardware profile of this machine, that weft plan --gpu takes")
          ->type_name("FILE.yaml");
  command
      ->add_option("--like",
                   options->hardware.like,
                   "the known GPU, or its file, that says what one card cannot: NVLink, network; "
                   "default: the one of this card")
      ->type_name("NAME")
      ->needs(hardware);
  comma_list(command->add_option(
                 "--given",
                 options->hardware.given,
                 "numbers of the profile that are known and not measured, as in nic_gbps=25"))
      ->type_name("KEY=N,...")
      ->needs(hardware);
  on_chosen(*command, chosen, std::move(options), run_calibrate);
}

}  // namespace weft::cli
