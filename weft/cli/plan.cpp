// weft plan: what a run would cost on GPUs, before anything runs.
#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/number_range.h"
#include "weft/cli/plan_modes.h"

namespace weft::cli {
namespace {

int run_plan(const PlanOptions& options) {
  if (!options.validate.empty()) return plan_validate(options);
  if (options.simulate) return plan_simulate(options);
  throw base::ConfigError(
      "say what to plan: --simulate RECIPE prices one run, --validate=FILE.csv holds the model "
      "against published ones");
}

}  // namespace

void add_plan(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "plan",
      "predict step time, memory and what limits a run on a kind of GPU, before anything runs");
  auto options = std::make_shared<PlanOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft plan --simulate deepseek_v3 --gpu=gb200 --trace=step.json");
  command->add_option("--gpu", options->gpu, "kind of GPU, or its file; default: hardware.gpu")
      ->type_name("NAME");
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
  command
      ->add_option("--fit-models",
                   options->fit_models,
                   "models of the table whose rows are used; default: those of the shipped files")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->needs(fit);
  command->add_option("--write", options->write, "folder for the fitted hardware files")
      ->type_name("FOLDER")
      ->needs(fit);
  CLI::Option* simulate =
      command->add_flag("--simulate", options->simulate, "price one run and simulate its schedule");
  simulate->excludes(validate);
  command->add_option("--trace", options->trace, "file for the time line of the simulated step")
      ->type_name("FILE")
      ->needs(simulate);
  within(1,
         1e6,
         command->add_option("--imbalance",
                             options->imbalance,
                             "rows of the busiest expert-parallel rank, over the mean; 1: even"))
      ->needs(simulate);
  on_chosen(*command, chosen, std::move(options), run_plan);
}

}  // namespace weft::cli
