// weft verify: checks the engine against a reference run, under any layout.
#include <array>
#include <filesystem>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/start_model.h"
#include "weft/derive/derived.h"
#include "weft/measure/bench/reference_check.h"
#include "weft/rules/validate.h"

namespace weft::cli {
namespace {

struct VerifyOptions {
  std::string folder;
  std::vector<std::string> overrides;
  Format format = Format::Text;
};

void show_text(const std::vector<measure::Check>& checks, const config::Config& config, bool pass) {
  print_text(base::text("{:<52} {:>10} {:>10}\n", "check", "error", "tolerance"));
  for (const measure::Check& check : checks) {
    print_text(base::text("{:<52} {:>10.2e} {:>10.1e}  {}\n",
                          check.name,
                          check.error,
                          check.tolerance,
                          check.pass() ? "ok" : "FAILED"));
  }
  const std::int64_t world = derive::layout_of(config).world;
  const auto failed =
      std::ranges::count_if(checks, [](const measure::Check& check) { return !check.pass(); });
  print_text(base::text("{}: {} of {} checks hold on {} ({}), {}, micro-batch {}; order: {}\n",
                        pass ? "PASS" : "FAIL",
                        std::ssize(checks) - failed,
                        checks.size(),
                        base::counted(world, "rank"),
                        config::word(config.runtime.backend),
                        layout_text(config.model),
                        config.train.micro_batch_size,
                        order_text(config)));
}

void show_json(const std::vector<measure::Check>& checks, bool pass) {
  base::Json rows = base::Json::array();
  for (const measure::Check& check : checks) {
    rows.push_back({{"name", check.name},
                    {"error", check.error},
                    {"tolerance", check.tolerance},
                    {"pass", check.pass()}});
  }
  print_json({{"pass", pass}, {"checks", std::move(rows)}});
}

// Keys that a user may set; the folder decides model, data and optimizer.
constexpr std::array<std::string_view, 92> kChoices{
    "runtime.world_size",
    "runtime.backend",
    "runtime.device",
    "runtime.ranks_per_node",
    "runtime.threads_per_rank",
    "runtime.pin_ranks",
    "runtime.timeout_seconds",
    "train.micro_batch_size",
    "model.bf16",
    "model.apply_rope_fusion",
    "model.moe_permute_fusion",
    "model.cross_entropy_loss_fusion",
    "model.moe_token_dispatcher_type",
    "model.moe_flex_dispatcher_backend",
    "model.moe_expert_rank_capacity_factor",
    // With a capacity factor that drops choices the run differs from the reference, and verify
    // reports the difference.
    "model.moe_expert_capacity_factor",
    "model.moe_pad_expert_input_to_capacity",
    "model.use_transformer_engine_op_fuser",
    "model.tensor_model_parallel_size",
    "model.sequence_parallel",
    "model.should_pad_vocab",
    "model.make_vocab_size_divisible_by",
    "comm_overlap.tp_comm_overlap",
    "comm_overlap.tp_comm_overlap_cfg",
    "model.moe_router_fusion",
    "model.pipeline_model_parallel_size",
    "model.virtual_pipeline_model_parallel_size",
    "model.pipeline_model_parallel_layout",
    "model.num_layers_in_first_pipeline_stage",
    "model.num_layers_in_last_pipeline_stage",
    "model.account_for_embedding_in_pipeline_split",
    "model.account_for_loss_in_pipeline_split",
    "model.microbatch_group_size_per_vp_stage",
    "model.context_parallel_size",
    "model.cp_comm_type",
    "model.hierarchical_context_parallel_sizes",
    "comm_overlap.cp_comm_overlap",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "model.gradient_accumulation_fusion",
    "model.recompute_granularity",
    "model.recompute_method",
    "model.recompute_num_layers",
    "model.recompute_modules",
    "model.fine_grained_activation_offloading",
    "model.offload_modules",
    "model.ep_overlap_early_attn_memory_release",
    "model.overlap_dispatch_backward_with_experts_wgrad",
    "model.moe_shared_expert_overlap",
    "comm_overlap.moe_token_slices",
    "comm_overlap.overlap_moe_expert_parallel_comm",
    "comm_overlap.delay_wgrad_compute",
    "comm_overlap.overlap_p2p_comm",
    "comm_overlap.batch_p2p_comm",
    "comm_overlap.defer_embedding_wgrad_compute",
    "comm_overlap.wgrad_deferral_limit",
    "model.overlap_p2p_comm_warmup_flush",
    "runtime.pipeline_schedule",
    "comm_overlap.overlap_grad_reduce",
    "comm_overlap.overlap_param_gather",
    "comm_overlap.overlap_param_gather_with_optimizer_step",
    "comm_overlap.align_param_gather",
    "comm_overlap.bucket_size",
    "ddp.use_distributed_optimizer",
    "ddp.num_distributed_optimizer_instances",
    "ddp.overlap_grad_reduce",
    "ddp.overlap_param_gather",
    "ddp.align_param_gather",
    "ddp.bucket_size",
    "ddp.num_buckets",
    "ddp.average_in_collective",
    "optimizer.use_distributed_optimizer",
    "optimizer.overlap_param_gather",
    "optimizer.optimizer_cpu_offload",
    "optimizer.optimizer_offload_fraction",
    "optimizer.overlap_cpu_optimizer_d2h_h2d",
    "optimizer.pin_cpu_grads",
    "optimizer.pin_cpu_params",
    "ddp.delay_wgrad_compute",
    "runtime.optimizer_offload_bucket_size",
    "runtime.offload_layers_share",
    "runtime.logits_chunk",
    "runtime.deterministic",
    "runtime.schedule",
    "runtime.recompute_under_overlap",
    "optimizer.overlap_param_gather_with_optimizer_step",
    "fabric.intra_node_gb_per_second",
    "fabric.inter_node_gb_per_second",
    "fabric.intra_node_latency_us",
    "fabric.inter_node_latency_us",
    "fabric.jitter_us",
    "fabric.seed"};

std::vector<measure::Check> check(const rules::JudgedConfig& config,
                                  const checkpoint::HuggingFaceModel& model,
                                  const checkpoint::ReferenceRun& reference,
                                  const VerifyOptions& options,
                                  const std::optional<checkpoint::Bf16Reference>& bf16) {
  const train::Process process = this_process(options.format);
  return bf16 ? measure::check_bf16_reference(config, model, reference, *bf16, process)
              : measure::check_reference(config, model, reference, process);
}

void expect_reference_run(const std::string& folder) {
  for (const char* name :
       {"config.json", "model.safetensors", "about.json", "expected.safetensors"}) {
    if (std::filesystem::exists(std::filesystem::path(folder) / name)) continue;
    throw base::ConfigError(
        base::text("'{}' is no reference run: it has no {}; tools/make_reference.py makes one, and "
                   "tests/golden has some",
                   base::shown(folder),
                   name));
  }
}

int run_verify(const VerifyOptions& options) {
  expect_reference_run(options.folder);
  const words::Resolution run =
      words::resolve_words(recipes_folder(), options.overrides, words::Audience::Run);
  if (!run.recipe.empty()) {
    throw base::ConfigError(
        base::text("{}: the reference run's folder is the recipe: leave it out", run.recipe));
  }
  allow_only(run, kChoices, "the reference run's folder decides it");
  config::Config wanted = run.config;
  follow_launcher(run, wanted);
  if (config::is_pretended(wanted.runtime.backend)) {
    throw base::ConfigError(
        base::text("runtime.backend={}: a pretended world computes nothing to verify",
                   config::word(wanted.runtime.backend)));
  }
  const checkpoint::HuggingFaceModel model(options.folder);
  warn_of_weights(model);
  const checkpoint::ReferenceRun reference(options.folder, model.huggingface_config());
  std::optional<checkpoint::Bf16Reference> bf16;
  if (wanted.model.bf16) bf16.emplace(options.folder, model, reference);
  const rules::Verdict verdict =
      rules::validate(measure::reference_config(wanted, model, reference));
  const rules::JudgedConfig& config = verdict.judged.value();
  if (launcher_rank() == 0) {
    print_findings(run);
    print_findings(verdict);
  }
  const std::vector<measure::Check> checks = check(config, model, reference, options, bf16);
  if (checks.empty()) return kGood;  // this process holds no reporting rank
  const bool pass = std::ranges::all_of(checks, &measure::Check::pass);
  switch (options.format) {
    case Format::Text:
      show_text(checks, config, pass);
      break;
    case Format::Json:
      show_json(checks, pass);
      break;
  }
  return pass ? kGood : kFailed;
}

}  // namespace

void add_verify(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("verify",
                             "hold the engine, under any layout, against a reference run");
  auto options = std::make_shared<VerifyOptions>();
  command
      ->add_option("DIR",
                   options->folder,
                   "folder with config.json, model.safetensors, about.json, expected.safetensors, "
                   "and for model.bf16=true bf16.safetensors")
      ->required();
  command->add_option("OVERRIDES", options->overrides, "overrides a.b=c, as in world=4")
      ->type_name("[a.b=c ...]");
  add_format(*command, options->format);
  command->footer(
      "Example: weft verify tests/golden/qwen3_moe_tiny world=4 "
      "model.expert_model_parallel_size=2");
  on_chosen(*command, chosen, std::move(options), run_verify);
}

}  // namespace weft::cli
