#include "weft/words/megatron/megatron_line.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/words/tokenizer_vocabulary.h"

namespace weft::words {

using namespace config;
namespace {

using base::text;
namespace fs = std::filesystem;

// Models for which a default matters.
enum class Where { Always, Experts, Latent };

struct Default {
  std::string_view key, value;
  Where where = Where::Always;
};

// Defaults of Megatron-LM's parser that differ from Weft's.
constexpr Default kDefaults[] = {{"model.normalization", "LayerNorm"},
                                 {"model.layernorm_epsilon", "1e-5"},
                                 {"model.gated_linear_unit", "false"},
                                 {"model.activation_func", "gelu"},
                                 {"model.add_bias_linear", "true"},
                                 {"model.position_embedding_type", "learned_absolute"},
                                 {"model.share_embeddings_and_output_weights", "true"},
                                 {"model.attention_dropout", "0.1"},
                                 {"model.hidden_dropout", "0.1"},
                                 {"model.kv_lora_rank", "32", Where::Latent},
                                 {"model.rope_type", "yarn", Where::Latent},
                                 {"model.moe_token_dispatcher_type", "allgather", Where::Experts},
                                 {"model.moe_grouped_gemm", "false", Where::Experts},
                                 {"model.moe_router_norm_topk_prob", "false", Where::Experts},
                                 {"comm_overlap.overlap_grad_reduce", "false"},
                                 {"comm_overlap.overlap_param_gather", "false"},
                                 {"optimizer.adam_beta2", "0.999"},
                                 {"optimizer.weight_decay", "0.01"},
                                 {"scheduler.lr_decay_style", "linear"},
                                 {"train.eval_interval", "1000"},
                                 {"train.eval_iters", "100"}};

constexpr std::int64_t kUnknownVocabulary = 131072, kUsualLength = 4096;

// Value of a flag among the words, the last of several; empty: it takes none.
std::optional<std::string> flag_value(const Words& read, std::string_view flag) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < read.meant.size(); ++i) {
    const std::string& word = read.meant[i];
    if (word == flag) value = i + 1 < read.meant.size() ? read.meant[i + 1] : "";
    if (word.starts_with(flag) && word.size() > flag.size() && word[flag.size()] == '=') {
      value = word.substr(flag.size() + 1);
    }
  }
  return value;
}

bool has_flag(const Words& read, std::string_view flag) {
  return flag_value(read, flag).has_value();
}

std::int64_t rounded_up(std::int64_t count, std::int64_t unit) {
  return unit < 1 ? count : (count + unit - 1) / unit * unit;
}

class MegatronLine {
 public:
  MegatronLine(const Words& read, Ledger& ledger) : read_(read), ledger_(ledger) {}

  bool finish() {
    ask_for_gpu();
    for (const Default& one : kDefaults) {
      if (matters(one)) assume(one.key, one.value);
    }
    assume_sizes();
    assume_batch();
    set_groups();
    set_graph_state();
    leave_checkpoint();
    const bool unknown = set_vocabulary();
    say_defaults();
    return unknown;
  }

 private:
  const ModelConfig& model() const { return ledger_.config().model; }

  bool matters(const Default& one) const {
    switch (one.where) {
      case Where::Always:
        return true;
      case Where::Experts:
        return model().experts() > 0;
      case Where::Latent:
        return model().multi_latent_attention;
    }
    return true;
  }

  // Sets a key that no word sets.
  void assume(std::string_view key, std::string_view value) {
    if (ledger_.has_claim(key)) return;
    const Field& field = *find_field(key);
    if (!ledger_.assume(key, value)) return;
    if (!is_default(field, ledger_.config())) {
      said_.push_back(text("{}={}", key, value_text(field, ledger_.config())));
    }
  }

  // Megatron-LM runs on GPUs, and its line does not name them.
  void ask_for_gpu() {
    const HardwareConfig& hardware = ledger_.config().hardware;
    if (hardware.gpu || !hardware.device_name.empty() || hardware.compute_capability) return;
    ledger_.warn("H20",
                 "hardware.gpu",
                 "no GPU is named: memory and time are judged for ranks on the processor cores of "
                 "this machine",
                 "name the GPU, as in hardware.gpu=h100");
  }

  void assume_sizes() {
    const std::int64_t hidden = model().hidden_size, tp = model().tensor_model_parallel_size;
    // Two thirds of 4 * hidden_size, in steps of 64.
    constexpr std::int64_t kWidest = std::int64_t(1) << 40;
    if (model().gated_linear_unit && hidden > 0 && hidden < kWidest && !model().ffn_hidden_size) {
      assume("model.ffn_hidden_size", text("{}", 8 * hidden / 3 / 64 * 64));
    }
    if (model().experts() > 0 && tp > 1) {
      assume("model.expert_tensor_parallel_size", text("{}", tp));
    }
    const std::int64_t longest = model().max_position_embeddings.value_or(kUsualLength);
    assume("model.seq_length", text("{}", std::min(longest, kUsualLength)));
  }

  // Default batch: one micro-batch per data-parallel rank.
  void assume_batch() {
    const std::int64_t others = model().tensor_model_parallel_size *
                                model().pipeline_model_parallel_size *
                                model().context_parallel_size;
    const std::int64_t experts = model().experts() == 0 ? others
                                                        : model().expert_model_parallel_size *
                                                              model().expert_shards() *
                                                              model().pipeline_model_parallel_size;
    if (others < 1 || experts < 1) return;
    const std::int64_t world =
        ledger_.config().runtime.world_size.value_or(std::lcm(others, experts));
    if (world % others != 0) return;
    assume("train.global_batch_size",
           text("{}", ledger_.config().train.micro_batch_size * (world / others)));
  }

  void set_groups() {
    if (has_flag(read_, "--group-query-attention")) {
      // Its parser has one group if the flag stands alone.
      if (!has_flag(read_, "--num-query-groups")) assume("model.num_query_groups", "1");
      return;
    }
    if (!has_flag(read_, "--num-query-groups") || !model().num_query_groups) return;
    if (model().num_query_groups == model().num_attention_heads) return;
    ledger_.assume("model.num_query_groups", "null");
    ledger_.warn("H16",
                 "model.num_query_groups",
                 "--num-query-groups without --group-query-attention: Megatron-LM gives every "
                 "query head keys and values of its own",
                 "write --group-query-attention too");
  }

  void set_graph_state() {
    if (model().cuda_graph_impl == CudaGraphImpl::None || model().use_te_rng_tracker) return;
    ledger_.assume("model.use_te_rng_tracker", "true");
    ledger_.assume("rng.te_rng_tracker", "true");
    ledger_.warn("H16",
                 "model.use_te_rng_tracker",
                 "CUDA graphs without --te-rng-tracker: it is switched on, as Megatron-LM does",
                 "write --te-rng-tracker");
  }

  // Clears a flag that names a Megatron-LM checkpoint beside the model's flags: the key here names
  // a Hugging Face folder with a model.
  void leave_checkpoint() {
    const std::string folder = ledger_.config().checkpoint.pretrained_checkpoint;
    std::error_code ignored;
    if (folder.empty() || fs::exists(fs::path(folder) / "config.json", ignored)) return;
    ledger_.assume("checkpoint.pretrained_checkpoint", "");
    ledger_.warn("H16",
                 "checkpoint.pretrained_checkpoint",
                 text("--pretrained-checkpoint {} is a checkpoint of Megatron-LM, which Weft does "
                      "not read: the run is judged with the model of the flags",
                      shown(folder)),
                 "to start from weights, name a Hugging Face folder, and no flags of the model");
  }

  bool set_vocabulary() {
    const std::string type = flag_value(read_, "--tokenizer-type").value_or("");
    std::string name = flag_value(read_, "--tokenizer-model").value_or("");
    if (name.empty()) name = flag_value(read_, "--tokenizer-name-or-path").value_or("");
    const auto padded = base::parse_integer(flag_value(read_, "--padded-vocab-size").value_or(""));
    if (padded && *padded > 0) {
      ledger_.assume("model.vocab_size", text("{}", *padded));
      return false;
    }
    std::optional<std::int64_t> tokens;
    std::string from = text("the tokenizer {}", shown(name.empty() ? type : name));
    if (ledger_.has_claim("model.vocab_size")) {
      if (!has_flag(read_, "--vocab-size")) return false;
      tokens = model().vocab_size + (type == "NullTokenizer" ? 1 : 0);
      from = type == "NullTokenizer" ? "--vocab-size and the end of a document" : "--vocab-size";
    } else {
      tokens = tokenizer_vocabulary(type, name);
    }
    if (!tokens) {
      ledger_.assume("model.vocab_size", text("{}", kUnknownVocabulary));
      ledger_.warn("H17",
                   "model.vocab_size",
                   text("the vocabulary is unknown: Megatron-LM takes it from its tokenizer; the "
                        "run is judged with {} tokens",
                        kUnknownVocabulary),
                   "write --vocab-size N, or --padded-vocab-size N");
      return true;
    }
    pad_vocabulary(*tokens, from);
    return false;
  }

  // Pads the vocabulary to the rows of Megatron-LM's table; the padding has weights.
  void pad_vocabulary(std::int64_t tokens, const std::string& from) {
    constexpr std::int64_t kMost = 1 << 24;  // no table has a larger multiple
    const auto unit =
        base::parse_integer(flag_value(read_, "--make-vocab-size-divisible-by").value_or("128"));
    const std::int64_t rows =
        rounded_up(tokens,
                   std::clamp<std::int64_t>(unit.value_or(128), 0, kMost) *
                       std::clamp<std::int64_t>(model().tensor_model_parallel_size, 1, kMost));
    if (rows == model().vocab_size) return;
    ledger_.assume("model.vocab_size", text("{}", rows));
    ledger_.warn(
        "H17",
        "model.vocab_size",
        text("model.vocab_size = {}: {} has {} tokens, which Megatron-LM pads", rows, from, tokens),
        "write --padded-vocab-size N for another number of rows");
  }

  void say_defaults() {
    if (said_.empty()) return;
    ledger_.warn("H16",
                 "",
                 text("a line of Megatron-LM: what it leaves out has the defaults of that program, "
                      "not Weft's: {}",
                      fmt::join(said_, ", ")),
                 "set a key to have it otherwise, or name a recipe");
  }

  const Words& read_;
  Ledger& ledger_;
  std::vector<std::string> said_;
};

}  // namespace

bool is_megatron_line(const Words& read) {
  if (read.recipe || !read.harness.recipe.empty()) return false;
  if (read.program.find("pretrain_") != std::string::npos) return true;
  return has_flag(read, "--num-layers") && has_flag(read, "--hidden-size") &&
         has_flag(read, "--num-attention-heads");
}

bool finish_megatron_line(const Words& read, Ledger& ledger) {
  return MegatronLine(read, ledger).finish();
}

}  // namespace weft::words
