// Table of the options of Megatron Bridge's performance harness: argument and effect of each. `weft
// perf` and `weft check` accept all of them, other commands those that change the run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::words {

// Choices of the harness's options besides config keys: the recipe, and the measurement and
// comparison of its timing. `weft perf` follows all of them, `weft check` only the recipe.
struct HarnessSelection {
  std::string domain = "llm";
  std::string family;  // "qwen"
  std::string recipe;  // "qwen3_30b_a3b"
  std::string size;    // "30b_a3b", after a family, as in the harness of 25.11
  std::string task = "pretrain";
  bool use_recipes = false;    // base recipes instead of flat ones
  std::string config_variant;  // empty: the canonical recipe
  bool list_config_variants = false;
  std::optional<std::int64_t> num_gpus, gpus_per_node, max_steps;
  std::string gpu;
  std::string compute_dtype = "bf16";
  bool dryrun = false;
  std::string save_config_filepath, log_dir;

  // Window of timed steps, and comparison with a stored result.
  double skip_first_percent_time = 0.7;
  std::optional<std::int64_t> eval_time_start_step;  // inclusive
  std::optional<std::int64_t> eval_time_end_step;    // exclusive
  std::string golden_values_path;
  double timing_threshold = 0.05;
  double memory_threshold = 0.05;
  double skip_first_percent_loss = 0.2;
  double correlation_threshold = 0.95;
  double high_loss_tolerance = 0.1, medium_loss_tolerance = 0.05, low_loss_tolerance = 0.02;
  double final_loss_tolerance = 0.05;
  double max_outlier_ratio = 0.1;
  double outlier_threshold = 3.0;
  bool is_long_convergence_run = false;
};

// Effects of flags beyond setting one key, implemented in harness_effects.cpp.
enum class Effect {
  ExpertOverlap,      // --moe_a2a_overlap
  FlexBackend,        // --moe_flex_dispatcher_backend
  TensorParallel,     // -tp
  VirtualPipeline,    // -vp
  ExpertTensor,       // -et
  Layers,             // --num_layers
  DenseLayers,        // --first_k_dense_replace
  RecomputeLayers,    // -rl
  RecomputeModules,   // --recompute_modules
  OffloadLayers,      // -ol
  GraphImpl,          // --cuda_graph_impl
  GraphScope,         // --cuda_graph_scope
  TokenDrop,          // --use_tokendrop
  FullySharded,       // --use_megatron_fsdp
  RegisteredBuffers,  // --nccl_ub
  Deterministic,      // --deterministic
  ComputeDtype,       // -c
  Timeout,            // --distributed_timeout_minutes
  Data,               // --data
  DataPaths,          // --dataset_paths
  LayersPerChunk,     // Megatron-LM's --num-layers-per-virtual-pipeline-stage
  MegatronData,       // --data-path
  Positions,          // --position-embedding-type
  MixedPrecision,     // Megatron Bridge's mixed_precision
  WeightDecay,        // --start-weight-decay, --end-weight-decay, --weight-decay-incr-style
  Unmodelled,         // unknown to Weft, and changes training
};

enum class Takes {
  Nothing,    // presence is enough
  Text,       // any text
  LowerText,  // any text, converted to lower case
  Word,       // one of `words`
  Words,      // some of `words`, separated by commas
  Integer,
  IntegerOrNone,  // "None" is null; -1 keeps the recipe's value
  MaybeInteger,   // the value is optional; without it the flag has no effect
  Number,
  Switch,  // true or false
};

// Destination of a selecting flag's value.
using SelectionMember = std::variant<std::monostate,
                                     std::string HarnessSelection::*,
                                     std::optional<std::int64_t> HarnessSelection::*,
                                     double HarnessSelection::*,
                                     bool HarnessSelection::*>;

struct Does {
  enum class Kind {
    SetsKey,  // sets the key `text`
    Acts,     // triggers `effect`
    Selects,  // for `weft perf` and `weft check`: recipe, window, comparison
    Nothing,  // no effect, for the reason `text`
  };
  Kind kind = Kind::Nothing;
  std::string_view text = "";
  Effect effect = Effect::ExpertOverlap;
  SelectionMember member = {};  // also set together with a key
};

struct HarnessFlag {
  std::string_view name;   // "tensor_model_parallel_size"
  std::string_view brief;  // "tp"; may be empty
  Takes takes;
  std::string_view words;    // values of Takes::Word and Takes::Words, separated by spaces
  std::string_view initial;  // default of the harness
  Does does;
  std::string_view meaning;
};

std::span<const HarnessFlag> harness_flags();

// Finds "--moe_a2a_overlap" or "-tp"; nullptr: unknown.
const HarnessFlag* find_harness_flag(std::string_view dashed);
// Value of an earlier release in the words of 26.06: `--task lora` of 25.11 is peft, and `fp8` of
// 25.09 takes its scaling from the line's --fp8_recipe.
std::string current_value(const HarnessFlag& flag,
                          const std::string& given,
                          std::span<const std::string> line);
// Flag with this unique prefix ("--max_step"), as argparse accepts it. nullptr: none or several;
// also for kebab-case, which is Megatron-LM's.
const HarnessFlag* find_harness_prefix(std::string_view dashed);

// Normalized value ("true" for True, lower case if the flag requires it); nullopt: invalid for the
// flag.
std::optional<std::string> accepted_value(const HarnessFlag& flag, std::string_view typed);
// "one of deepep, hybridep", "true or false", for messages.
std::string takes_text(const HarnessFlag& flag);

// True if the selecting flag chooses the recipe; false: it concerns the measurement.
bool chooses_recipe(const HarnessFlag& flag);

// Stores an accepted value in the flag's member of the selection, if any.
void select(const HarnessFlag& flag, std::string_view accepted, HarnessSelection& selection);

}  // namespace weft::words
