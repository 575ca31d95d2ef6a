// weft train: trains, and leaves a run folder.
#include <fmt/chrono.h>
#include <signal.h>

#include <chrono>
#include <ctime>
#include <iostream>

#include "weft/base/error.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/memory/memory_limit.h"
#include "weft/cli/memory/memory_search.h"
#include "weft/cli/output.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/machine.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/cli/run/run_room.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/run/startup.h"
#include "weft/cli/run/train_progress.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/progress.h"
#include "weft/cli/terminal/time_left.h"
#include "weft/kernels/device.h"
#include "weft/report/starts.h"
#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::cli {
namespace {

struct TrainOptions {
  RunArguments run;
  Opening opening = Opening::Short;
  base::Overwrite overwrite = base::Overwrite::No;
};

int number_of(config::ExitSignal signal) {
  switch (signal) {
    case config::ExitSignal::Sigterm:
      return SIGTERM;
    case config::ExitSignal::Sigint:
      return SIGINT;
    case config::ExitSignal::Sighup:
      return SIGHUP;
    case config::ExitSignal::Sigusr1:
      return SIGUSR1;
    case config::ExitSignal::Sigusr2:
      return SIGUSR2;
  }
  return SIGTERM;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Text for a run whose checkpoint has all its steps.
std::string finished_text(const train::TrainResult& result, const config::Config& config) {
  std::string text =
      base::text("nothing left to do: train.train_iters={} is reached\ncheckpoint {}\n",
                 config.train.train_iters,
                 result.checkpoint->string());
  if (!config.checkpoint.save_hf.empty()) {
    text += base::text("weights    {}{}\n",
                       config.checkpoint.save_hf,
                       result.saved ? "" : " (was there already and is left as it is)");
  }
  return text + base::text("To go on: train.train_iters={} or more\n", 2 * result.steps);
}

std::string summary(const train::TrainResult& result, const config::Config& config) {
  if (result.is_finished) return finished_text(result, config);
  std::string text = base::text("{} {}",
                                result.interrupted ? "stopped after" : "trained",
                                base::counted(result.steps, "step"));
  if (result.first_step > 0) text += base::text(", {} of them before", result.first_step);
  // Only the last stage of a pipeline knows the loss, and a pretended world runs one rank.
  const bool has_loss = !config::is_pretended(config.runtime.backend) || result.final_loss != 0 ||
                        config.model.pipeline_model_parallel_size == 1;
  if (!has_loss) {
    text += " (the loss is on the last pipeline stage, which does not run here)";
  } else if (result.steps > result.first_step) {
    text += base::text(": loss {:.4f} -> {:.4f}", result.first_loss, result.final_loss);
  }
  if (result.eval_loss && result.eval_loss_before) {
    text += base::text(", held-out {:.4f} -> {:.4f}", *result.eval_loss_before, *result.eval_loss);
  } else if (result.eval_loss) {
    text += base::text(", held-out {:.4f}", *result.eval_loss);
  }
  for (const train::SetLoss& set : result.eval_losses) {
    text += base::text(", {} {:.4f}", set.name, set.loss);
  }
  if (result.test_loss) text += base::text(", test {:.4f}", *result.test_loss);
  if (result.repeated.value_or(0) > 0) {
    text += base::text(
        "\nbudget    exceeded in {} of {}, which ran again without it (raise "
        "model.moe_expert_rank_capacity_factor)",
        *result.repeated,
        base::counted(result.steps, "step"));
  }
  if (result.not_finite > 0) {
    text += base::text("\nskipped   {} that {} not finite and changed nothing",
                       base::counted(result.not_finite, "step"),
                       result.not_finite == 1 ? "was" : "were");
  }
  std::int64_t dropped = 0;
  for (const train::ExpertLoads& load : result.expert_loads) dropped += load.dropped;
  if (dropped > 0) {
    text += base::text("\ndropped   {} in the last step (token, chosen expert)",
                       base::counted(dropped, "slot"));
  }
  text += base::text("\nspeed     {:.0f} tokens/s{}\nmemory   ",
                     result.tokens_per_second,
                     is_pretended(config) ? ", of a pretended world: one rank ran" : "");
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    const std::size_t bytes = result.peak_bytes[static_cast<std::size_t>(tag)];
    if (bytes == 0) continue;
    text += base::text(" {} {}",
                       tensor::name_of(static_cast<tensor::Tag>(tag)),
                       base::human_bytes(static_cast<double>(bytes)));
  }
  text += base::text("  (peaks of rank 0; at one time {}, taken from the device {})\n",
                     base::human_bytes(static_cast<double>(result.peak_total_bytes)),
                     base::human_bytes(static_cast<double>(result.reserved_bytes)));
  if (result.snapshot_bytes > 0) {
    text += base::text("copy      {} of host memory on rank 0, for saves beside the run\n",
                       base::human_bytes(static_cast<double>(result.snapshot_bytes)));
  }
  text += base::text("run       {}\nmetrics   {}\n",
                     result.run_dir.string(),
                     (result.run_dir / "metrics.jsonl").string());
  if (const std::string& board = config.logger.tensorboard_dir; !board.empty()) {
    text += base::text("board     {0}  (tensorboard --logdir={0})\n", board);
  }
  if (result.checkpoint) text += base::text("saved     {}\n", result.checkpoint->string());
  if (result.saved) text += base::text("weights   {}\n", config.checkpoint.save_hf);
  if (result.exposure && !result.exposure->kinds.empty()) {
    text +=
        base::text("comm      of a {:.2f} ms step, by kind\n", result.exposure->mean_step_ms()) +
        trace::to_table(*result.exposure);
  }
  if (result.trace) {
    text += base::text("trace     {}  (open in ui.perfetto.dev)\n", result.trace->string());
  } else if (config.runtime.trace && result.interrupted) {
    text += base::text("trace     none: stopped before the traced steps, the last {}\n",
                       config.runtime.trace_steps);
  }
  return text;
}

// Memory of rank 0, in the form of `weft memory --json`.
base::Json memory_of(const train::TrainResult& result) {
  base::Json tags = base::Json::object();
  for (int tag = 0; tag < tensor::kTags; ++tag) {
    tags[std::string(tensor::name_of(static_cast<tensor::Tag>(tag)))] =
        result.peak_bytes[static_cast<std::size_t>(tag)];
  }
  return {{"peak_bytes", result.peak_total_bytes},
          {"peak_bytes_by_tag", tags},
          {"reserved_bytes", result.reserved_bytes},
          {"snapshot_bytes", result.snapshot_bytes}};
}

base::Json result_json(const train::TrainResult& result, const config::Config& config) {
  base::Json json{{"steps", result.steps},
                  {"first_loss", result.first_loss},
                  {"final_loss", result.final_loss},
                  {"tokens_per_second", result.tokens_per_second},
                  {"memory", memory_of(result)},
                  {"run_dir", result.run_dir.string()},
                  {"interrupted", result.interrupted}};
  if (is_pretended(config)) json["pretended"] = true;
  if (result.is_finished) json["finished"] = true;
  if (result.eval_loss_before) json["eval_loss_before"] = *result.eval_loss_before;
  if (result.eval_loss) json["eval_loss"] = *result.eval_loss;
  if (!result.eval_losses.empty()) json["eval_losses"] = train::to_json(result.eval_losses);
  if (result.test_loss) json["test_loss"] = *result.test_loss;
  if (result.not_finite > 0) json["skipped_iterations"] = result.not_finite;
  if (result.repeated) json["repeated_steps"] = *result.repeated;
  if (!result.expert_loads.empty()) json["expert_loads"] = train::to_json(result.expert_loads);
  if (result.first_step > 0) json["first_step"] = result.first_step;
  if (result.checkpoint) json["checkpoint"] = result.checkpoint->string();
  if (result.saved) json["weights"] = config.checkpoint.save_hf;
  if (!result.failures.empty()) json["failures"] = result.failures;
  if (result.trace) json["trace"] = result.trace->string();
  if (result.exposure) json["exposure"] = trace::to_json(result.exposure->total);
  return json;
}

// Records the machine for the run's report; a failure is ignored, since the run matters more.
void keep_machine(const config::Config& config,
                  const Machine& machine,
                  const train::RunStart& start) {
  report::Start kept{.step = start.step,
                     .time = base::text("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                     .version = machine.version,
                     .build = machine.build,
                     .cpu = machine.cpu,
                     .cores = machine.cores,
                     .memory_bytes = machine.memory_bytes};
  // A launcher may pin each of its processes to one core.
  if (config::are_processes(config.runtime.backend)) kept.cores = base::online_cores();
  if (config.runtime.device == config::DeviceKind::Cuda) {
    const kernels::GpuReport gpus = kernels::gpu_report();
    if (!gpus.gpus.empty()) kept.gpu = gpus.gpus.front().name;
  }
  try {
    report::keep_start(start.run_dir, kept);
  } catch (const base::SystemError& error) {
    print_warning(base::text("the run folder does not say on what it runs: {}", error.what()));
  }
}

// Prints warnings on rank 0 only.
void warn(const rules::Verdict& verdict) {
  if (launcher_rank() != 0) return;
  for (const config::Finding& warning : verdict.warnings) {
    print_warning(config::to_text(warning));
  }
  for (const std::string& warning : opening_warnings(verdict.config)) print_warning(warning);
}

void show(const train::TrainResult& result, const config::Config& config, Format format) {
  switch (format) {
    case Format::Text:
      print_text(summary(result, config));
      break;
    case Format::Json:
      print_json(result_json(result, config));
      break;
  }
}

// ConfigError before the start if the ranks exceed the memory of their GPUs and machine. One
// process per machine checks all of it.
void require_room(const config::Config& asked, const config::Config& config) {
  if (launcher_local_rank() != 0) return;
  const measure::MemoryRoom room = room_here(config);
  if (is_ample(config, room)) return;
  ProgressLine line;
  std::vector<std::string> complaints;
  for (const MemoryLimit& limit : limits_of_run(asked, config, room, shown_on(line))) {
    complaints.push_back(to_text(limit));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

int run_train(const TrainOptions& options) {
  const Format format = options.run.format;
  const words::Resolution run = resolve(options.run);
  require_trainable(run);
  config::Config asked = run.config;
  follow_launcher(run, asked);
  const StartedRun begun = started(run, asked);
  asked = begun.config;
  const rules::Verdict verdict = with_findings(run, rules::validate(asked));
  const rules::JudgedConfig& config = verdict.judged.value();
  require_room(asked, config);
  const std::string name = name_of_run(run, config);
  ProgressLine line(format == Format::Json ? LinesTo::Errors : LinesTo::Output);
  warn(verdict);
  // Opens the log after all checks: an error leaves standard output empty.
  bool has_started = false;
  const Machine machine = this_machine();  // before ranks are pinned to some cores
  const auto open_log = [&](const train::RunStart& start) {
    has_started = true;
    keep_machine(config, machine, start);
    for (const std::string& said : opening_lines(verdict, name, options.opening)) line.log(said);
    for (const std::string& said : continuing_lines(begun.automatic)) line.log(said);
    for (const std::string& said : start_lines(config, start)) line.log(said);
    for (const std::string& warning : start_warnings(config, start)) print_warning(warning);
  };
  TimeLeft time_left;
  const std::atomic<bool>& stop =
      catch_interrupts(config->train.exit_signal_handler ? Caught::All : Caught::ExceptSchedulers,
                       number_of(config->train.exit_signal));
  const train::TrainRequest request{
      .config = config,
      .name = name,
      .stop = &stop,
      .start = open_log,
      .log =
          [&](const std::string& text) {
            line.log(is_pretended(config) ? text + " pretended world |" : text);
          },
      .progress =
          [&](const train::StepRecord& record) {
            time_left.step_over(seconds_now());
            line.show(
                progress_text(record, time_left.seconds_for(record.iterations - record.iteration)));
          },
      .process = this_process(format),
      .overwrite = options.overwrite};
  train::TrainResult result;
  try {
    result = train::train(request);
  } catch (const base::SystemError& error) {
    if (has_started || !stop) throw;
    print_error(error.what());  // error of the wait that the stop ended
    return interrupted_code();
  }
  line.clear();
  if (result.is_rank_zero) show(result, config, format);
  std::cout.flush();
  for (const std::string& failure : result.failures) print_error(failure);
  if (!result.failures.empty()) return kFailed;
  return result.is_rank_zero && result.interrupted ? interrupted_code() : kGood;
}

}  // namespace

void add_train(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("train", "train a model, and leave a run folder");
  auto options = std::make_shared<TrainOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft train tiny world=2 train.train_iters=50 runtime.trace=true");
  command->add_flag_callback(
      "--verbose",
      [options] { options->opening = Opening::Full; },
      "say at the start also what was set automatically, and what does not overlap and why");
  add_overwrite(*command,
                options->overwrite,
                "replace what an earlier run left where this one writes: its run folder, "
                "checkpoints of the same steps, the folder of checkpoint.save_hf");
  on_chosen(*command, chosen, std::move(options), run_train);
}

}  // namespace weft::cli
