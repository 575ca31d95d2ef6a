// weft train: trains, and leaves a run folder.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/interrupt.h"
#include "weft/cli/launcher.h"
#include "weft/cli/layout_text.h"
#include "weft/cli/machine_limit.h"
#include "weft/cli/output.h"
#include "weft/cli/progress.h"
#include "weft/cli/start_model.h"
#include "weft/cli/startup.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/train/trainer.h"

namespace weft::cli {
namespace {

std::string progress_text(const train::StepRecord& record) {
  const double share =
      static_cast<double>(record.iteration) / static_cast<double>(record.iterations);
  const double left =
      static_cast<double>(record.iterations - record.iteration) * record.elapsed_ms / 1e3;
  return base::text("{} step {}/{}  loss {:.4f}  {:.0f} tokens/s  {:.0f} s left",
                    bar(share, 24),
                    record.iteration,
                    record.iterations,
                    record.loss,
                    record.tokens_per_second,
                    left);
}

// A rank whose peers are only taken to be there learns from itself and waits for nobody.
bool is_pretended(const config::Config& config) {
  return config.runtime.backend == config::CommBackend::Fake;
}
constexpr const char* kPretended =
    "weft: warning: a pretended world (runtime.backend=fake): rank 0 runs alone and its peers are "
    "taken to hold and send what it does; losses, speed and waiting times are not those of a run";

std::string opening(const config::Config& config, const std::string& recipe) {
  const grid::Layout layout = derive::layout_of(config);
  const derive::ParameterCount parameters = derive::parameters_of(config.model);
  return base::text(
      "weft: {}: {} ({}), {}, {}, {}, {:.1f} M parameters ({:.1f} M "
      "active); order: {}",
      recipe.empty() ? "defaults" : recipe,
      base::counted(layout.world, "rank"),
      is_pretended(config) ? "pretended, one runs" : config::word(config.runtime.backend),
      layout_text(config.model),
      base::counted(config.model.num_layers, "layer"),
      base::counted(config.model.experts(), "expert"),
      static_cast<double>(parameters.total) / 1e6,
      static_cast<double>(parameters.active) / 1e6,
      order_text(config));
}

std::string summary(const train::TrainResult& result, const config::Config& config) {
  std::string text = base::text("{} {}: loss {:.4f} -> {:.4f}",
                                result.interrupted ? "stopped after" : "trained",
                                base::counted(result.steps, "step"),
                                result.first_loss,
                                result.final_loss);
  if (result.eval_loss) text += base::text(", held-out {:.4f}", *result.eval_loss);
  if (result.repeated.value_or(0) > 0) {
    text += base::text(
        "\nbudget    exceeded in {} of {}, which ran again without it (raise "
        "model.moe_expert_rank_capacity_factor)",
        *result.repeated,
        base::counted(result.steps, "step"));
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
  text += base::text("  (peak, rank 0)\nrun       {}\nmetrics   {}\n",
                     result.run_dir.string(),
                     (result.run_dir / "metrics.jsonl").string());
  if (const std::string& saved = config.checkpoint.save_hf; !saved.empty()) {
    text += base::text("weights   {}\n", saved);
  }
  if (result.exposure && result.exposure->total.communication_ms > 0) {
    text += base::text("comm      {}\n", trace::to_line(*result.exposure)) +
            trace::legend("          ");
  }
  if (result.trace) {
    text += base::text("trace     {}  (open in ui.perfetto.dev)\n", result.trace->string());
  }
  return text;
}

base::Json result_json(const train::TrainResult& result, const config::Config& config) {
  base::Json json{{"steps", result.steps},
                  {"first_loss", result.first_loss},
                  {"final_loss", result.final_loss},
                  {"tokens_per_second", result.tokens_per_second},
                  {"run_dir", result.run_dir.string()},
                  {"interrupted", result.interrupted}};
  if (is_pretended(config)) json["pretended"] = true;
  if (result.eval_loss) json["eval_loss"] = *result.eval_loss;
  if (result.repeated) json["repeated_steps"] = *result.repeated;
  if (!result.expert_loads.empty()) json["expert_loads"] = train::to_json(result.expert_loads);
  if (!config.checkpoint.save_hf.empty()) json["weights"] = config.checkpoint.save_hf;
  if (result.trace) json["trace"] = result.trace->string();
  if (result.exposure) json["exposure"] = trace::to_json(result.exposure->total);
  return json;
}

int run_train(const RunArguments& arguments) {
  const words::Resolution run = resolve(arguments);
  config::Config config = run.config;
  follow_launcher(config);
  config = with_start(run, config);
  const rules::Verdict verdict = with_findings(run, rules::validate(config));
  config = verdict.config;
  if (const auto limit = machine_limit(config)) {
    throw base::ConfigError(base::text("{}: {}", limit->message, limit->fix));
  }
  ProgressLine line;
  if (launcher_rank() == 0) {
    line.log(opening(config, run.recipe));
    if (is_pretended(config)) line.log(kPretended);
    const grid::Fabric fabric = derive::fabric_of(config);
    if (!fabric.is_free()) line.log("weft: " + grid::describe(fabric));
    for (const std::string& said : startup_lines(verdict)) line.log(said);
  }
  const train::TrainResult result = train::train(
      {.config = config,
       .name = run.recipe,
       .stop = &catch_interrupts(),
       .log =
           [&](const std::string& text) {
             line.log(is_pretended(config) ? text + " pretended world |" : text);
           },
       .progress = [&](const train::StepRecord& record) { line.show(progress_text(record)); },
       .report = failure_printer(arguments.format)});
  line.clear();
  if (!result.is_rank_zero) return kGood;
  switch (arguments.format) {
    case Format::Text:
      print_text(summary(result, config));
      break;
    case Format::Json:
      print_json(result_json(result, config));
      break;
  }
  return result.interrupted ? kInterrupted : kGood;
}

}  // namespace

void add_train(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand("train", "train a model, and leave a run folder");
  auto arguments = std::make_shared<RunArguments>();
  add_run_arguments(*command,
                    *arguments,
                    "weft train tiny world=2 train.train_iters=50 runtime.trace=true");
  on_chosen(*command, chosen, std::move(arguments), run_train);
}

}  // namespace weft::cli
