// Rules judged while command-line words are read, by words/harness/harness_effects.cpp,
// words/harness/flex_effect.cpp, words/ledger.cpp and config/other_names.cpp. Their examples are
// command-line words.
#include "weft/rules/topics.h"

namespace weft::rules {
namespace {

constexpr Rule kWordsRules[] = {
    {.id = "C4",
     .kind = Kind::Warning,
     .when = "a key of comm_overlap is written with its name on the model",
     .then = "it means the key of comm_overlap",
     .why =
         "Megatron Bridge overwrites those fields of the model from comm_overlap at every start, "
         "so that a value set only on the model is lost without a word. Here both names are one "
         "key.",
     .example = "model.overlap_p2p_comm=false"},
    {.id = "W23",
     .kind = Kind::Warning,
     .when = "a word sets a key that an earlier word, or a side effect of one, set otherwise",
     .then = "the later word wins",
     .why =
         "In the harness the winner depends on the entry point: flags beat overrides in one, and "
         "overrides beat flags in the other. Here there is one order, the order typed.",
     .example = "-tp 2 model.sequence_parallel=false"},
    {.id = "W146",
     .kind = Kind::Warning,
     .when = "a word sets one of two keys of which only one holds, and the recipe the other",
     .then = "the recipe's gets its default, or false",
     .why =
         "Of a length in steps and one as a share, of two formats, of two ways to offload, and so "
         "on, the word says which is meant. A file of --config-file does so too. Two that are "
         "both typed are refused by the rule of their keys (W142 and others).",
     .example = "tiny --lr-warmup-fraction 0.1"},
    {.id = "F1",
     .kind = Kind::Warning,
     .when = "--moe_flex_dispatcher_backend X and no experts",
     .then = "nothing is changed",
     .why = "A dense model dispatches no tokens.",
     .example = "--moe_flex_dispatcher_backend deepep"},
    {.id = "F3",
     .kind = Kind::Mended,
     .when =
         "--moe_flex_dispatcher_backend deepep on a GPU that is not Ampere, Hopper, B200 or B300",
     .then =
         "moe_token_dispatcher_type = alltoall, moe_flex_dispatcher_backend = null; shared-expert "
         "overlap is left alone",
     .why = "The flag applies a backend where it can. The key of the same name only names one, and "
            "is refused on such a GPU (F9).",
     .example = "model.moe_token_dispatcher_type=flex --moe_flex_dispatcher_backend deepep "
                "model.num_moe_experts=8 hardware.gpu=gb200"},
    {.id = "F4",
     .kind = Kind::Mended,
     .when =
         "--moe_flex_dispatcher_backend hybridep on a GPU that is not Ampere, Hopper or Blackwell",
     .then = "as F3",
     .why = "As F3.",
     .example = "model.moe_token_dispatcher_type=flex --moe_flex_dispatcher_backend hybridep "
                "model.num_moe_experts=8 hardware.compute_capability=7.0"},
    {.id = "F5",
     .kind = Kind::Warning,
     .when = "--moe_flex_dispatcher_backend X with X other than deepep, hybridep and None",
     .then = "nothing is changed",
     .why = "The flag knows two backends; ncclep is chosen by keys.",
     .example = "--moe_flex_dispatcher_backend ncclep model.num_moe_experts=8"},
    {.id = "H1",
     .kind = Kind::Automatic,
     .when = "--moe_a2a_overlap true",
     .then = "delay_wgrad_compute = true, moe_shared_expert_overlap = false, beside the overlap",
     .why = "The harness's flag stands for more than its name says. To have the overlap alone, set "
            "comm_overlap.overlap_moe_expert_parallel_comm.",
     .example = "--moe_a2a_overlap true model.num_moe_experts=4 model.expert_model_parallel_size=2 "
                "model.bf16=true"},
    {.id = "H2",
     .kind = Kind::Warning,
     .when =
         "--moe_a2a_overlap false and the overlap is on by the recipe, a file or an earlier word",
     .then = "the overlap stays on",
     .why = "In the harness the flag switches on only. People read it as a switch both ways.",
     .example = "comm_overlap.overlap_moe_expert_parallel_comm=true --moe_a2a_overlap false "
                "model.num_moe_experts=4 model.expert_model_parallel_size=2 model.bf16=true"},
    {.id = "H3",
     .kind = Kind::Automatic,
     .when = "-tp N",
     .then = "sequence_parallel = (N > 1)",
     .why = "The harness couples the two; the key model.tensor_model_parallel_size does not.",
     .example = "-tp 2"},
    {.id = "H4",
     .kind = Kind::Automatic,
     .when = "--recompute_num_layers N, --recompute_modules LIST",
     .then = "recompute_granularity = full and recompute_method = block; recompute_granularity = "
             "selective",
     .why = "A number of layers means whole layers, a list of modules means those.",
     .example = "--recompute_num_layers 1"},
    {.id = "H5",
     .kind = Kind::Automatic,
     .when = "-ol N",
     .then = "cpu_offloading = true, cpu_offloading_weights = false",
     .why = "The number of layers switches their offload on, for activations alone.",
     .example = "-ol 1"},
    {.id = "H6",
     .kind = Kind::Automatic,
     .when = "--cuda_graph_impl other than none",
     .then = "rng.te_rng_tracker = true, model.use_te_rng_tracker = true",
     .why = "A graph can only capture a random state that is made for it.",
     .example = "--cuda_graph_impl local --moe_a2a_overlap false"},
    {.id = "H7",
     .kind = Kind::Automatic,
     .when = "--use_tokendrop true or false",
     .then =
         "true: capacity 1.0, padded, routing as learned; false: no capacity, routing balanced by "
         "force",
     .why = "Both make every expert's work equal: by dropping and padding, or by routing evenly.",
     .example = "--use_tokendrop true model.num_moe_experts=4"},
    {.id = "H8",
     .kind = Kind::Automatic,
     .when = "--use_megatron_fsdp true",
     .then = "data_parallel_sharding_strategy = optim_grads_params, gradient_accumulation_fusion = "
             "true, average_in_collective = false, defer_embedding_wgrad_compute = false, "
             "checkpoint.load empty",
     .why = "Full sharding comes as a bundle in the harness.",
     .example = "--use_megatron_fsdp true"},
    {.id = "H9",
     .kind = Kind::Automatic,
     .when = "--nccl_ub true",
     .then = "average_in_collective = false",
     .why = "Collectives on registered buffers sum.",
     .example = "ddp.average_in_collective=true --nccl_ub true"},
    {.id = "H10",
     .kind = Kind::Automatic,
     .when = "--deterministic",
     .then = "cross_entropy_loss_fusion = false, tp_comm_overlap = false",
     .why = "Both may sum in another order from run to run on GPUs.",
     .example = "model.cross_entropy_loss_fusion=true --deterministic"},
    {.id = "H11",
     .kind = Kind::Automatic,
     .when = "-tp, -cp or --moe_a2a_overlap, on a GPU, and no word sets "
             "hardware.cuda_device_max_connections",
     .then = "Blackwell and later: 32; else 32 with deepep or hybridep and 8 without; on Hopper 1 "
             "where tp or cp > 1 and experts do not overlap",
     .why =
         "The harness computes the variable anew when one of these flags changes what it follows "
         "from.",
     .example = "-cp 1 hardware.gpu=h100"},
    {.id = "H12",
     .kind = Kind::Automatic,
     .when = "--num_layers N with a list in moe_layer_freq; --first_k_dense_replace K",
     .then = "moe_layer_freq = K dense layers, then MoE layers, N in all",
     .why = "The list has an entry for each layer, so that it must be made anew.",
     .example = "--first_k_dense_replace 1 model.num_moe_experts=4"},
    {.id = "H13",
     .kind = Kind::Automatic,
     .when = "--moe_flex_dispatcher_backend deepep, hybridep or None",
     .then = "flex, that backend and no shared-expert overlap; None: alltoall and no backend",
     .why =
         "The flag applies a backend. Where no GPU is named none can be asked, and it is accepted.",
     .example = "--moe_flex_dispatcher_backend deepep model.num_moe_experts=8 hardware.gpu=h100",
     .also = "F2"},
    {.id = "H14",
     .kind = Kind::Warning,
     .when = "a flag of the harness or of Megatron-LM that means nothing here",
     .then = "it is accepted and changes nothing",
     .why =
         "Command lines are pasted whole. What belongs to Slurm, containers, profilers or another "
         "trainer's kernels is named, not obeyed and not silently dropped.",
     .example = "--detach false"},
    {.id = "H15",
     .kind = Kind::Automatic,
     .when = "weft perf, no recipe for the number of GPUs asked, and no word sets the global batch",
     .then =
         "train.global_batch_size follows the data-parallel ranks; refused where it is not whole",
     .why = "A recipe moved to another number of GPUs keeps the work of each rank, so that steps "
            "compare.",
     .example = "-m qwen -mr qwen3_30b_a3b -g h100 -ng 32 --dryrun",
     .command = "perf"},
    {.id = "H16",
     .kind = Kind::Warning,
     .when = "a line of Megatron-LM: one of its scripts (pretrain_*.py), or --num-layers, "
             "--hidden-size and --num-attention-heads, and no recipe",
     .then = "what it leaves out has Megatron-LM's defaults, which are listed",
     .why = "Weft's defaults follow Megatron Bridge. The parser of Megatron-LM has others: "
            "LayerNorm, learned positions, biases, GELU without a gate, tied embeddings, experts "
            "cut as dense layers are, the allgather dispatcher, no overlap.",
     .example = "pretrain_gpt.py --num-layers 2 --vocab-size 256"},
    {.id = "H20",
     .kind = Kind::Warning,
     .when = "a line of Megatron-LM without hardware.gpu",
     .then = "the run is judged for ranks on processor cores",
     .why = "Megatron-LM finds its GPUs when it starts, so that its line names none. Their kind "
            "decides what fits and how long a step takes.",
     .example = "pretrain_gpt.py --num-layers 2 --vocab-size 256"},
    {.id = "H17",
     .kind = Kind::Warning,
     .when = "a line of Megatron-LM whose vocabulary its tokenizer says, or nothing says",
     .then = "model.vocab_size = the rows of the padded table; 131072 where nothing says it, and "
             "weft train refuses",
     .why = "Megatron-LM asks the tokenizer and pads to a multiple of "
            "--make-vocab-size-divisible-by times tp. Weft knows the tokenizers of some models by "
            "name; the padding has weights there.",
     .example = "pretrain_gpt.py --num-layers 2 --tokenizer-model Qwen3-30B-A3B"},
    {.id = "H18",
     .kind = Kind::Warning,
     .when = "torchrun --nnodes=LEAST:MOST, or --nproc-per-node=gpu",
     .then = "runtime.world_size = the most ranks that it may start",
     .why = "Such a line does not say how many ranks there will be.",
     .example = "torchrun --nproc-per-node=gpu train.py tiny train.global_batch_size=8"},
    {.id = "H19",
     .kind = Kind::Automatic,
     .when = "-pp or -vp: on deepseek_v3 or kimi_k2, or -pp 1 where the recipe has chunks",
     .then = "model.pipeline_model_parallel_layout as Megatron Bridge lays out those sizes; "
             "model.virtual_pipeline_model_parallel_size = null",
     .why =
         "The harness computes the layout of these models anew from both sizes. Of sizes that it "
         "does not know it keeps DeepSeek-V3's layout, and gives Kimi-K2 none.",
     .example = "deepseek_v3 -pp 8 -vp 2 world=64 train.global_batch_size=64 -ep 8"},
    {.id = "H23",
     .kind = Kind::Warning,
     .when = "a word of Megatron-LM or Megatron Bridge that changes time or memory there, and no "
             "number here",
     .then = "it is accepted; the price has it at its default",
     .why = "What is learned is the same. A price is read with what it leaves out.",
     .example = "--use-sharp"},
    {.id = "H21",
     .kind = Kind::Warning,
     .when = "a word of Megatron-LM or Megatron Bridge that changes what is learned, and that "
             "Weft does not know",
     .then = "runtime.unmodelled names it: the run is judged, planned and priced without it, and "
             "not trained",
     .why = "A pasted line is judged whole, and no other model than the one asked for is trained.",
     .example = "--qk-l2-norm"},
    {.id = "H22",
     .kind = Kind::Automatic,
     .when = "start and end of the weight decay, both the same",
     .then = "optimizer.weight_decay is that",
     .why = "Megatron has a schedule of the weight decay, which is constant by default.",
     .example = "--start-weight-decay 0.2 --end-weight-decay 0.2"},
};

}  // namespace

std::span<const Rule> word_rules() { return kWordsRules; }

}  // namespace weft::rules
