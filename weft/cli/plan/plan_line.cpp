#include "weft/cli/plan/plan_line.h"

#include <algorithm>
#include <string_view>

#include "weft/cli/output.h"
#include "weft/cli/run/start_model.h"
#include "weft/config/codec.h"
#include "weft/config/field.h"
#include "weft/plan/cost/workload.h"
#include "weft/plan/hardware/hardware.h"
#include "weft/rules/validate.h"
#include "weft/words/megatron/megatron_line.h"
#include "weft/words/recipe.h"
#include "weft/words/words.h"

namespace weft::cli {
namespace {

// Prefixes of layout keys, which a search chooses.
constexpr std::string_view kOfLayout[] = {"model.tensor_model_parallel_size",
                                          "model.sequence_parallel",
                                          "model.pipeline_model_parallel_",
                                          "model.virtual_pipeline_",
                                          "model.num_layers_in_",
                                          "model.account_for_",
                                          "model.microbatch_group_",
                                          "model.context_parallel_size",
                                          "model.expert_model_parallel_size",
                                          "model.expert_tensor_parallel_size",
                                          "model.moe_token_dispatcher_type",
                                          "model.moe_flex_dispatcher_",
                                          "model.recompute_",
                                          "model.cpu_offloading",
                                          "model.fine_grained_",
                                          "model.offload_modules",
                                          "model.cuda_graph_"};

// Model of a Megatron-LM line, with the optimizer of the line.
config::Config line_model(const config::Config& line) {
  config::Config model;
  model.model = line.model;
  model.optimizer = line.optimizer;
  for (const config::Field& field : config::fields()) {
    const auto begins = [&](std::string_view name) { return field.key.starts_with(name); };
    if (std::ranges::any_of(kOfLayout, begins)) field.copy(config::Config(), model);
  }
  return model;
}

// The recipe's model without its layout, or the model of the flags.
PlanModel line_model(const words::Resolution& run) {
  if (run.recipe.empty())
    return {.name = name_of_run(run, run.config), .config = line_model(run.config)};
  const words::ChosenRecipe chosen = words::find_recipe(recipes_folder(), run.recipe);
  return find_plan_model(chosen.file.stem().string());
}

bool names_gpu(const config::HardwareConfig& hardware) {
  return hardware.gpu || !hardware.device_name.empty() || hardware.compute_capability;
}

}  // namespace

RunArguments with_asked_gpu(const PlanOptions& options) {
  RunArguments run = options.run;
  const std::string setting = "hardware.gpu=" + options.gpu;
  config::Config scratch;
  const bool is_kind = config::find_field("hardware.gpu")->set(scratch, options.gpu);
  if (options.gpu.empty() || !is_kind) return run;
  const words::Resolution line = words::resolve_what_reads(recipes_folder(),
                                                           run.words,
                                                           words::Audience::Run,
                                                           run.default_recipe);
  if (line.is_megatron_line && !names_gpu(line.config.hardware)) run.words.push_back(setting);
  return run;
}

std::optional<PlanOptions> question_of_line(const PlanOptions& options) {
  const words::Words read = words::read_words(options.run.words, words::Audience::Run);
  const bool by_flags = !read.harness.recipe.empty();
  if (!by_flags && !words::is_megatron_line(read)) return std::nullopt;
  const words::Resolution run = resolve(with_asked_gpu(options));
  print_findings(run);
  const config::Config& config = run.config;
  PlanOptions question = options;
  question.model = line_model(run);
  if (rules::judge(config).legal())
    question.model->own = {{.name = name_of_run(run, config), .config = config, .is_line = true}};
  SearchOptions& search = question.search;
  if (search.gpus == 0) search.gpus = config.runtime.world_size.value_or(0);
  if (search.batch == 0) search.batch = config.train.global_batch_size;
  if (search.sequence == 0) search.sequence = config.model.seq_length;
  if (search.precision.empty()) search.precision = name_of(plan::number_of(config.model));
  if (question.gpu.empty() && config.hardware.gpu) {
    question.gpu = config::word(*config.hardware.gpu);
  }
  return question;
}

}  // namespace weft::cli
