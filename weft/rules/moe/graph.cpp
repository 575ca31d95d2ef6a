// CUDA graph implementations and their conflicts. graph_scope.cpp has the scopes.
#include "weft/rules/captured.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

bool has_graphs(const ModelConfig& model) { return model.cuda_graph_impl != CudaGraphImpl::None; }

bool is_full_iteration(const ModelConfig& model) {
  return model.cuda_graph_impl == CudaGraphImpl::FullIteration;
}

void judge_no_graphs(Judge& judge) {
  if (has_graphs(judge.model())) return;
  judge.set("model.cuda_graph_modules",
            "[]",
            text("model.cuda_graph_impl = none captures nothing, and model.cuda_graph_modules = {}",
                 typed_list(judge.model().cuda_graph_modules)));
}

// The scope full_iteration is an alias of model.cuda_graph_impl=full_iteration.
void judge_iteration_alias(Judge& judge) {
  const ModelConfig& model = judge.model();
  const bool alias = model.cuda_graph_impl == CudaGraphImpl::Local || is_full_iteration(model);
  if (!alias || !contains(model.cuda_graph_modules, CudaGraphScope::FullIteration)) return;
  const std::string why = "the scope full_iteration is model.cuda_graph_impl=full_iteration";
  std::vector<CudaGraphScope> rest = model.cuda_graph_modules;
  std::erase(rest, CudaGraphScope::FullIteration);
  judge.set("model.cuda_graph_impl", "full_iteration", why);
  judge.set("model.cuda_graph_modules", typed_list(rest), why);
}

void judge_local(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.cuda_graph_impl != CudaGraphImpl::Local) return;
  judge.report("model.cuda_graph_impl",
               text("model.cuda_graph_impl = local with model.cuda_graph_modules = {}: local "
                    "captures whole iterations only",
                    typed_list(model.cuda_graph_modules)),
               "set model.cuda_graph_impl=transformer_engine for a layer or parts of it, or "
               "full_iteration");
}

void judge_iteration_alone(Judge& judge) {
  const ModelConfig& model = judge.model();
  const bool scoped = is_full_iteration(model) && !model.cuda_graph_modules.empty();
  const bool elsewhere = model.cuda_graph_impl == CudaGraphImpl::TransformerEngine &&
                         names_scope(model, CudaGraphScope::FullIteration);
  if (!scoped && !elsewhere) return;
  judge.report(
      "model.cuda_graph_modules",
      text("model.cuda_graph_impl = {} with model.cuda_graph_modules = {}: an iteration is "
           "captured whole",
           word(model.cuda_graph_impl),
           typed_list(model.cuda_graph_modules)),
      "set model.cuda_graph_impl=full_iteration model.cuda_graph_modules=[]");
}

void judge_rng_trackers(Judge& judge) {
  const Config& config = judge.config();
  if (!config.model.use_te_rng_tracker && !config.rng.te_rng_tracker) return;
  const std::string why = "the model's and the run's random state are one";
  judge.set("model.use_te_rng_tracker", "true", why);
  judge.set("rng.te_rng_tracker", "true", why);
}

void judge_rng_of_graphs(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!has_graphs(model) || model.use_te_rng_tracker) return;
  judge.report("model.use_te_rng_tracker",
               text("model.cuda_graph_impl = {} needs a random state that a graph can capture",
                    word(model.cuda_graph_impl)),
               "set model.use_te_rng_tracker=true");
}

void judge_nan_check(Judge& judge) {
  if (!is_full_iteration(judge.model())) return;
  if (!judge.config().rerun_state_machine.check_for_nan_in_loss) return;
  judge.report("rerun_state_machine.check_for_nan_in_loss",
               "rerun_state_machine.check_for_nan_in_loss reads the loss on the host, inside the "
               "iteration that model.cuda_graph_impl = full_iteration captures",
               "set rerun_state_machine.check_for_nan_in_loss=false");
}

void judge_layer_offload(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!has_graphs(model) || is_full_iteration(model) || !model.cpu_offloading) return;
  judge.report(
      "model.cpu_offloading",
      text("model.cpu_offloading with model.cuda_graph_impl = {}", word(model.cuda_graph_impl)),
      "set model.cpu_offloading=false, or model.cuda_graph_impl=full_iteration");
}

void judge_captured_recompute(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!has_graphs(model) || is_full_iteration(model)) return;
  if (model.recompute_granularity != RecomputeGranularity::Full) return;
  judge.report("model.recompute_granularity",
               text("model.recompute_granularity = full with model.cuda_graph_impl = {}",
                    word(model.cuda_graph_impl)),
               "use selective recomputation, or model.cuda_graph_impl=full_iteration");
}

constexpr Rule kGraphRules[] = {
    {.id = "G1",
     .kind = Kind::Automatic,
     .when = "model.cuda_graph_impl = none and scopes are named",
     .then = "model.cuda_graph_modules := []",
     .why = "Nothing captures them.",
     .example = "model.cuda_graph_modules=[attn]",
     .judge = judge_no_graphs},
    {.id = "G3",
     .kind = Kind::Automatic,
     .when = "the scope full_iteration with model.cuda_graph_impl = local or full_iteration",
     .then = "model.cuda_graph_impl := full_iteration, the scope is taken out",
     .why = "Two ways to write one thing; the rules after this one know one of them.",
     .example = "model.cuda_graph_impl=local model.cuda_graph_modules=[full_iteration] "
                "model.use_te_rng_tracker=true rerun_state_machine.check_for_nan_in_loss=false",
     .judge = judge_iteration_alias},
    {.id = "V12",
     .kind = Kind::Automatic,
     .when = "model.use_te_rng_tracker or rng.te_rng_tracker",
     .then = "both := true",
     .why = "The model and the run draw from the same state.",
     .example = "rng.te_rng_tracker=true",
     .judge = judge_rng_trackers},
    {.id = "G2",
     .when = "model.cuda_graph_impl = local, other than for a whole iteration",
     .then = "refused",
     .why = "Layers and their parts are captured by transformer_engine. Megatron-Core alone has "
            "scopes for local too (TC-83, TC-93); the Bridge refuses them.",
     .example = "model.cuda_graph_impl=local model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true",
     .also = "TC-83 TC-93",
     .judge = judge_local},
    {.id = "TC-81",
     .when = "model.cuda_graph_impl = full_iteration with scopes, or full_iteration as a scope of "
             "transformer_engine",
     .then = "refused",
     .why = "A whole iteration has no parts.",
     .example = "model.cuda_graph_impl=full_iteration model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true rerun_state_machine.check_for_nan_in_loss=false",
     .judge = judge_iteration_alone},
    {.id = "B7",
     .when = "CUDA graphs without model.use_te_rng_tracker",
     .then = "refused",
     .why = "A graph replays the numbers it captured; the state must be one that it can advance.",
     .example = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn]",
     .judge = judge_rng_of_graphs},
    {.id = "V11",
     .when =
         "model.cuda_graph_impl = full_iteration with rerun_state_machine.check_for_nan_in_loss",
     .then = "refused",
     .why = "The check waits for the device in the middle of what is captured.",
     .example = "model.cuda_graph_impl=full_iteration model.use_te_rng_tracker=true",
     .judge = judge_nan_check},
    {.id = "TC-82",
     .when = "CUDA graphs with model.cpu_offloading, other than of a whole iteration",
     .then = "refused",
     .why = "Copies to the host cross the borders of a layer's graph.",
     .example = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true model.cpu_offloading=true "
                "model.cpu_offloading_num_layers=1",
     .judge = judge_layer_offload},
    {.id = "TC-90",
     .when = "full recomputation with CUDA graphs, other than of a whole iteration",
     .then = "refused",
     .why = "A layer's graph would have to be captured inside its own backward.",
     .example = "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true model.recompute_granularity=full "
                "model.recompute_method=uniform model.recompute_num_layers=1",
     .judge = judge_captured_recompute},
};

}  // namespace

std::span<const Rule> graph_rules() { return kGraphRules; }

}  // namespace weft::rules
