// Sequences of the data, padded and packed, and the loss over them.
#include "weft/rules/captured.h"
#include "weft/rules/chosen.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

void judge_fixed_width(Judge& judge) {
  const ModelConfig& model = judge.model();
  const std::int64_t pp = model.pipeline_model_parallel_size, ep = model.expert_model_parallel_size;
  if (pp <= 1 && ep <= 1) return;
  judge.set("dataset.pad_to_max_length",
            "true",
            text("with pp = {} and ep = {}, ranks exchange sequences of one width", pp, ep));
}

bool is_packed(const Judge& judge) {
  return judge.config().dataset.packed_sequence_size.has_value();
}

void judge_packed_graphs(Judge& judge) {
  if (!is_packed(judge) || judge.model().cuda_graph_impl == CudaGraphImpl::None) return;
  if (judge.config().dataset.pad_to_max_length.value_or(false)) return;
  judge.report("dataset.pad_to_max_length",
               text("dataset.packed_sequence_size = {} with model.cuda_graph_impl = {}: packed "
                    "sequences differ in length, a graph's shapes do not",
                    *judge.config().dataset.packed_sequence_size,
                    word(judge.model().cuda_graph_impl)),
               "set dataset.pad_to_max_length=true");
}

void judge_packed_lengths(Judge& judge) {
  if (!is_packed(judge) || !captures_attention(judge.model())) return;
  if (judge.config().dataset.pad_cu_seqlens) return;
  judge.report("dataset.pad_cu_seqlens",
               text("dataset.packed_sequence_size = {} with attention captured: the list of packed "
                    "lengths changes from step to step",
                    *judge.config().dataset.packed_sequence_size),
               "set dataset.pad_cu_seqlens=true, or capture without attention");
}

void judge_packing(Judge& judge) {
  const DatasetConfig& dataset = judge.config().dataset;
  const std::int64_t batch = judge.config().train.micro_batch_size;
  if (is_packed(judge) && dataset.pack_sequences_in_batch) {
    judge.report("dataset.pack_sequences_in_batch",
                 text("dataset.packed_sequence_size = {} and dataset.pack_sequences_in_batch both "
                      "pack",
                      *dataset.packed_sequence_size),
                 "keep one of them");
  }
  if (is_packed(judge) && batch > 1) {
    judge.report(
        "train.micro_batch_size",
        text("train.micro_batch_size = {} with dataset.packed_sequence_size = {}, which is "
             "a whole micro-batch already",
             batch,
             *dataset.packed_sequence_size),
        "set train.micro_batch_size=1");
  }
  if (dataset.pack_sequences_in_batch && batch == 1) {
    judge.report("train.micro_batch_size",
                 "dataset.pack_sequences_in_batch with train.micro_batch_size = 1 has nothing to "
                 "pack",
                 "raise train.micro_batch_size");
  }
}

void judge_determinism(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.deterministic_mode || !model.cross_entropy_loss_fusion) return;
  judge.report("model.cross_entropy_loss_fusion",
               "model.deterministic_mode with model.cross_entropy_loss_fusion",
               "set model.cross_entropy_loss_fusion=false");
}

void judge_loss_kernel(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.cross_entropy_loss_fusion) return;
  if (model.cross_entropy_fusion_impl != CrossEntropyImpl::TransformerEngine) return;
  judge.report("model.cross_entropy_fusion_impl",
               "Megatron warns of the stability of model.cross_entropy_fusion_impl = te",
               "set model.cross_entropy_fusion_impl=native");
}

constexpr Rule kDatasetRules[] = {
    {.id = "V3",
     .kind = Kind::Automatic,
     .when = "pp > 1 or ep > 1",
     .then = "dataset.pad_to_max_length := true",
     .why = "Stages and expert-parallel ranks exchange tensors whose size both ends know.",
     .example = "model.pipeline_model_parallel_size=2",
     .judge = judge_fixed_width},
    {.id = "V13",
     .when = "sequences packed before the run with CUDA graphs and without padding",
     .then = "refused",
     .why = "A graph's shapes are fixed.",
     .example = "dataset.packed_sequence_size=64 model.cuda_graph_impl=transformer_engine "
                "model.cuda_graph_modules=[mlp] model.use_te_rng_tracker=true",
     .judge = judge_packed_graphs},
    {.id = "V14",
     .when = "sequences packed before the run, attention captured, and dataset.pad_cu_seqlens off",
     .then = "refused",
     .why = "Attention reads the list of packed lengths, which must have one size to be captured. "
            "A whole layer and a whole iteration hold the attention too.",
     .example = "dataset.packed_sequence_size=64 dataset.pad_to_max_length=true "
                "model.cuda_graph_impl=transformer_engine model.cuda_graph_modules=[attn] "
                "model.use_te_rng_tracker=true",
     .judge = judge_packed_lengths},
    {.id = "V15",
     .when =
         "sequences packed before the run with a micro-batch above 1, packed in the batch with a "
         "micro-batch of 1, or both",
     .then = "refused",
     .why = "A sequence packed before is a micro-batch; packing in the batch makes one of several.",
     .example = "dataset.packed_sequence_size=64 train.micro_batch_size=2 "
                "train.global_batch_size=2",
     .judge = judge_packing},
    {.id = "V26",
     .when = "model.deterministic_mode with model.cross_entropy_loss_fusion",
     .then = "refused",
     .why = "The fused loss of Megatron sums in no fixed order.",
     .example = "model.deterministic_mode=true model.cross_entropy_loss_fusion=true",
     .judge = judge_determinism},
    {.id = "MP-10",
     .kind = Kind::Warning,
     .when = "model.cross_entropy_loss_fusion with model.cross_entropy_fusion_impl = te",
     .then = "warned",
     .why = "Megatron warns of this kernel's stability.",
     .example = "model.cross_entropy_loss_fusion=true model.cross_entropy_fusion_impl=te",
     .judge = judge_loss_kernel},
};

}  // namespace

std::span<const Rule> dataset_rules() { return kDatasetRules; }

}  // namespace weft::rules
