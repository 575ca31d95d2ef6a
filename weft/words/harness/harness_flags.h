// The options of Megatron Bridge's performance harness, as one table: what each takes, and what it
// does here. `weft perf` and `weft check` take them all; other commands take those that change the
// run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::words {

// What the harness's options choose apart from config keys: the recipe, and how its timing is
// measured and compared. `weft perf` follows all of it, `weft check` the choice of the recipe.
struct HarnessSelection {
  std::string domain = "llm";
  std::string family;  // "qwen"
  std::string recipe;  // "qwen3_30b_a3b"
  std::string size;    // "30b_a3b", after a family, as the harness of 25.11 names a recipe
  std::string task = "pretrain";
  bool use_recipes = false;    // the base recipes instead of the flat ones
  std::string config_variant;  // empty: the canonical recipe
  bool list_config_variants = false;
  std::optional<std::int64_t> num_gpus, gpus_per_node, max_steps;
  std::string gpu;
  std::string compute_dtype = "bf16";
  bool dryrun = false;
  std::string save_config_filepath, log_dir;

  // The window of steps that counts, and what is held against a stored result.
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

// What a flag does beyond setting one key; harness_effects.cpp has the functions.
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
  Unmodelled,         // what Weft does not know, and changes what is learned
};

enum class Takes {
  Nothing,    // its presence says it
  Text,       // anything
  LowerText,  // anything, in small letters
  Word,       // one of `words`
  Words,      // some of `words`, separated by commas
  Integer,
  IntegerOrNone,  // "None" is null; -1 keeps what the recipe has
  MaybeInteger,   // the value may be left out, which changes nothing
  Number,
  Switch,  // true or false
};

// Where a selecting flag puts its value.
using SelectionMember = std::variant<std::monostate,
                                     std::string HarnessSelection::*,
                                     std::optional<std::int64_t> HarnessSelection::*,
                                     double HarnessSelection::*,
                                     bool HarnessSelection::*>;

struct Does {
  enum class Kind {
    SetsKey,  // the key `text`
    Acts,     // `effect`
    Selects,  // for `weft perf` and `weft check`: the recipe, the window, the comparison
    Nothing,  // for the reason `text`
  };
  Kind kind = Kind::Nothing;
  std::string_view text = "";
  Effect effect = Effect::ExpertOverlap;
  SelectionMember member = {};  // also where a key is set
};

struct HarnessFlag {
  std::string_view name;   // "tensor_model_parallel_size"
  std::string_view brief;  // "tp"; may be empty
  Takes takes;
  std::string_view words;    // of Takes::Word and Takes::Words, separated by spaces
  std::string_view initial;  // the harness's default
  Does does;
  std::string_view meaning;
};

std::span<const HarnessFlag> harness_flags();

// Of "--moe_a2a_overlap" or "-tp"; null where there is none.
const HarnessFlag* find_harness_flag(std::string_view dashed);
// The one flag whose name begins so ("--max_step"), as argparse takes it; null where there is none
// or several, and for kebab-case, which is Megatron-LM's.
const HarnessFlag* find_harness_prefix(std::string_view dashed);

// The value as it travels on ("true" for True, small letters where the flag takes those), or
// nothing where it is not what the flag takes.
std::optional<std::string> accepted_value(const HarnessFlag& flag, std::string_view typed);
// "one of deepep, hybridep", "true or false": for messages.
std::string takes_text(const HarnessFlag& flag);

// Whether a selecting flag says which recipe is meant, or something of its measurement.
bool chooses_recipe(const HarnessFlag& flag);

// Writes an accepted value to the flag's member of the selection, where it has one.
void select(const HarnessFlag& flag, std::string_view accepted, HarnessSelection& selection);

}  // namespace weft::words
