// Assignment of work to ranks.
#include "weft/base/text.h"
#include "weft/derive/pipeline.h"
#include "weft/rules/advice/facts.h"
#include "weft/rules/advice/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

std::optional<Note> fast_domain(const Config& config) {
  const RunFacts run = facts_of(config);
  if (!config.hardware.gpu || run.ep <= 1 || run.ep * run.etp <= run.domain) return {};
  return note("model.expert_model_parallel_size",
              text("ep * etp = {}*{} = {} is more than the {} GPUs of a fast domain",
                   run.ep,
                   run.etp,
                   run.ep * run.etp,
                   run.domain),
              "where memory allows, keep it inside and put pipeline stages between machines");
}

std::optional<Note> whole_experts(const Config& config) {
  const RunFacts run = facts_of(config);
  if (run.etp <= 1 || config.model.experts() < 2) return {};
  return note("model.expert_tensor_parallel_size",
              text("experts are cut in {} (etp): small products become smaller", run.etp),
              "raise model.expert_model_parallel_size instead and set "
              "model.expert_tensor_parallel_size=1");
}

std::optional<Note> long_context(const Config& config) {
  const std::int64_t length = config.model.seq_length;
  if (length < 8192 || config.model.context_parallel_size > 1) return {};
  std::int64_t cp = 2;
  while (cp * 2 * 4096 <= length) cp *= 2;
  return note("model.context_parallel_size",
              text("model.seq_length = {} on one rank", length),
              text("try model.context_parallel_size={}, about seq_length / 4096", cp));
}

std::optional<Note> pipeline_bubble(const Config& config) {
  const RunFacts run = facts_of(config);
  const double bubble =
      static_cast<double>(run.pp - 1) / static_cast<double>(run.micro_batches * run.vpp);
  const PipelineSchedule schedule = derive::pipeline_schedule(config);
  const bool fills = schedule == PipelineSchedule::ZeroBubble ||
                     schedule == PipelineSchedule::DualPipeV;  // fills most of it
  if (run.pp <= 1 || bubble <= 0.2 || fills) return {};
  return note(
      "train.global_batch_size",
      text("pp = {}, vpp = {} and {} micro-batches leave a rank idle for about {:.0f} % of its "
           "work ((pp-1) / (micro-batches * vpp))",
           run.pp,
           run.vpp,
           run.micro_batches,
           100 * bubble),
      "raise the global batch or model.virtual_pipeline_model_parallel_size, or try "
      "runtime.pipeline_schedule=zb_h1");
}

constexpr Advice kLayoutAdvice[] = {
    {.id = "A13",
     .when = "ep * etp beyond a fast domain",
     .then = "keep it inside where memory allows",
     .why = "Links between machines are ten times slower; pipeline stages send far less than "
            "experts do.",
     .measured =
         "EP communication is about 20 % of a step inside NVLink, 40 to 60 % across H100 machines.",
     .example = "hardware.gpu=h100 model.num_moe_experts=16 model.expert_model_parallel_size=16 "
                "model.moe_router_dtype=fp32 model.bf16=true train.global_batch_size=16",
     .judge = fast_domain},
    {.id = "A14",
     .when = "experts cut by tensor parallelism",
     .then = "spread them instead",
     .why = "An expert's products are small already; ep keeps them whole.",
     .measured = "Every published MoE layout of Megatron has ETP 1.",
     .example = "model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "model.expert_tensor_parallel_size=2 train.global_batch_size=4",
     .judge = whole_experts},
    {.id = "A15",
     .when = "sequences of 8192 tokens or more on one rank",
     .then = "context parallelism",
     .why = "Activations grow with the sequence, attention with its square.",
     .measured = "The rule of thumb: cp about seq_length / 4096, a power of two.",
     .example = "model.seq_length=16384",
     .judge = long_context},
    {.id = "A16",
     .when = "a pipeline that idles for more than 20 % of its work",
     .then = "more micro-batches, or chunks",
     .why = "While the pipeline fills and drains, (pp-1)/vpp turns of each rank are empty.",
     .measured = "pp 8, vpp 1, 16 micro-batches: 44 %; vpp 4: 11 %.",
     .example = "model.num_layers=4 model.pipeline_model_parallel_size=4 train.global_batch_size=4",
     .judge = pipeline_bubble},
};

}  // namespace

std::span<const Advice> layout_advice() { return kLayoutAdvice; }

}  // namespace weft::rules
