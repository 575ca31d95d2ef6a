// weft plan: price of a run on GPUs, and its best layout, before it starts.
#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/plan/plan_line.h"
#include "weft/cli/plan/plan_modes.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/terminal/number_range.h"

namespace weft::cli {
namespace {

int run_plan(const PlanOptions& options) {
  if (!options.validate.empty() && !options.fit && !options.write.empty()) {
    throw base::ConfigError("--write is for what --fit finds: give both, or neither");
  }
  if (!options.validate.empty()) return plan_validate(options);
  if (options.simulate) return plan_simulate(options);
  const std::optional<PlanOptions> line = question_of_line(options);
  return plan_search(line ? *line : options);
}

}  // namespace

void add_plan(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "plan",
      "search the layouts of a model on so many GPUs: time, memory and what limits each");
  auto options = std::make_shared<PlanOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft plan deepseek_v3 --gpus=1024 --gpu=h100 --gbs=8192 --seq=4096\n"
                    "Example: weft plan qwen3_30b_a3b --gpus=16 --gpu=h100 --safe --top=3\n"
                    "Example: weft plan --simulate deepseek_v3 --gpu=gb200 --trace=step.json");
  command->footer(
      command->get_footer() +
      "\nA search takes the name of a recipe or a model, the path of a recipe, or that of a\n"
      "Hugging Face config.json or its folder; keys after it are kept in every layout.\n"
      "Exit code: 0 done, 1 where the model fits in no layout, or the run of --simulate does not\n"
      "fit, 2 where the question is wrong.");
  const std::vector<CLI::Option*> of_search = add_search_options(*command, options->search);
  command->add_option("--gpu", options->gpu, "kind of GPU, or its file; default: hardware.gpu")
      ->type_name("NAME");
  CLI::Option* program_option = add_program_option(*command, options->program);
  CLI::Option* validate =
      command
          ->add_option("--validate",
                       options->validate,
                       "a table of published runs: the errors of the model, row by row")
          ->type_name("FILE.csv");
  CLI::Option* fit = command->add_flag(
      "--fit",
      options->fit,
      "fit the calibrated numbers of the hardware files to the table first (docs/plan.md)");
  fit->needs(validate);
  comma_list(command->add_option(
                 "--fit-models",
                 options->fit_models,
                 "models of the table whose rows are used; default: those of the shipped files"))
      ->type_name("NAME,...")
      ->needs(fit);
  CLI::Option* write =
      command
          ->add_option("--write",
                       options->write,
                       "file for a recipe of the best layout; with --fit, folder for the fitted "
                       "hardware files")
          ->type_name("FILE");
  CLI::Option* simulate =
      command->add_flag("--simulate", options->simulate, "price one run and simulate its schedule");
  simulate->excludes(validate)->excludes(write);
  program_option->excludes(validate);
  for (CLI::Option* option : of_search) option->excludes(validate)->excludes(simulate);
  add_overwrite(*command, options->overwrite);
  command->add_option("--trace", options->trace, "file for the time line of the simulated step")
      ->type_name("FILE")
      ->needs(simulate);
  command
      ->add_option(
          "--imbalance",
          options->imbalance,
          "rows over experts: balanced, as published runs force them; the busiest rank's over the "
          "mean (natural routing: 1.3 to 4 published at EP64, 1.6 fits Qwen3-30B on text at EP16); "
          "skew:S; or the folder of a run, as measured there")
      ->capture_default_str()
      ->type_name("WORD|RUN")
      ->excludes(validate);
  on_chosen(*command, chosen, std::move(options), run_plan);
}

}  // namespace weft::cli
