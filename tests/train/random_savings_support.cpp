#include "tests/train/random_savings_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "weft/comm/launch.h"
#include "weft/derive/derived.h"
#include "weft/derive/memory/memory.h"
#include "weft/kernels/device.h"

namespace weft::train {
namespace {

using devices::DeviceKind;

constexpr std::int64_t kSteps = 2;

Words draw_modules(Draw& draw, const config::Config& config) {
  std::vector<std::string> modules{"core_attn",
                                   "layernorm",
                                   "moe_act",
                                   "mlp",
                                   "moe",
                                   "shared_experts"};
  if (config.model.multi_latent_attention) modules.push_back("mla_up_proj");
  std::string list;
  for (const std::string& module : modules) {
    if (draw.either() == "true") list += (list.empty() ? "" : ",") + module;
  }
  return {{"model.recompute_granularity", "selective"},
          {"model.recompute_modules", "[" + list + "]"}};
}

// Recomputing the whole MoE leaves no expert tensors to offload.
bool runs_moe_again(const Words& words) {
  return std::ranges::any_of(words, [](const auto& word) {
    const std::string list = "," + word.second.substr(1);  // "[mlp,moe]"
    return word.first == "model.recompute_modules" &&
           (list.find(",moe,") != list.npos || list.find(",moe]") != list.npos);
  });
}

void draw_offload(Draw& draw, Words& words) {
  std::string list;
  for (const std::string module :
       {"core_attn", "attn_proj", "attn_norm", "mlp_norm", "qkv_linear", "expert_fc1", "moe_act"}) {
    const bool is_alone = module == "attn_proj" && list.empty();  // Megatron refuses it alone
    const bool is_gone = (module == "expert_fc1" || module == "moe_act") && runs_moe_again(words);
    if (draw.either() == "true" && !is_alone && !is_gone)
      list += (list.empty() ? "" : ",") + module;
  }
  if (list.empty()) return;
  words.emplace_back("model.fine_grained_activation_offloading", "true");
  words.emplace_back("model.offload_modules", "[" + list + "]");
  words.emplace_back("runtime.offload_layers_share", draw.any_of({"0", "0", "0.5"}));
}

Words draw_recomputed(Draw& draw, const config::Config& config) {
  if (draw.any_of({"selective", "selective", "full"}) == "selective") {
    return draw_modules(draw, config);
  }
  return {{"model.recompute_granularity", "full"},
          {"model.recompute_method", draw.any_of({"uniform", "block"})},
          {"model.recompute_num_layers", draw.any_of({"1", "2", "3"})}};
}

// Optimizer state of ranks that share an optimizer.
void draw_optimizer_state(Draw& draw, Words& words) {
  if (std::ranges::find(words, "ddp.use_distributed_optimizer", &Words::value_type::first) ==
      words.end()) {
    return;
  }
  words.emplace_back("model.params_dtype", draw.any_of({"fp32", "bf16"}));
  if (draw.either() == "false") return;
  words.emplace_back("optimizer.use_precision_aware_optimizer", "true");
  words.emplace_back("optimizer.store_param_remainders", draw.either());
  words.emplace_back("optimizer.main_grads_dtype", draw.any_of({"fp32", "bf16"}));
  words.emplace_back("optimizer.main_params_dtype", draw.any_of({"fp32", "fp32", "fp16"}));
  words.emplace_back("optimizer.exp_avg_dtype", draw.any_of({"fp32", "bf16", "fp16"}));
  words.emplace_back("optimizer.exp_avg_sq_dtype", draw.any_of({"fp32", "bf16", "fp16"}));
}

// Router features that a recomputation must repeat: noise, full experts, moving biases, and fixed
// room.
void draw_router(Draw& draw, Words& words) {
  if (draw.either() == "true") words.emplace_back("model.moe_input_jitter_eps", "0.01");
  if (draw.either() == "true") {
    words.emplace_back("model.moe_router_score_function", "sigmoid");
    words.emplace_back("model.moe_router_enable_expert_bias", "true");
  }
  const std::string limit = draw.any_of({"", "", "capacity", "budget"});
  if (limit == "capacity") {
    words.emplace_back("model.moe_expert_capacity_factor", draw.any_of({"1.0", "1.5"}));
    words.emplace_back("model.moe_pad_expert_input_to_capacity", draw.either());
  } else if (limit == "budget") {
    words.emplace_back("model.moe_expert_rank_capacity_factor", "1.5");
  }
}

// Recomputation, offload, or both.
Words draw_savings(Draw& draw, const config::Config& config) {
  const std::string kind = draw.any_of({"recompute", "offload", "both"});
  Words words;
  if (kind != "offload") words = draw_recomputed(draw, config);
  if (kind != "recompute") draw_offload(draw, words);
  return words;
}

// A way of sharing sequences per layer, in place of a common one.
void draw_sharing(Draw& draw, Words& words) {
  for (auto& [key, value] : words) {
    if (key != "model.cp_comm_type" || draw.either() == "false") continue;
    std::string list;
    for (std::int64_t layer = 0; layer < savings_config("").model.num_layers; ++layer) {
      list += (list.empty() ? "" : ",") + draw.any_of({"p2p", "all_gather", "a2a", "a2a+p2p"});
    }
    value = "[" + list + "]";
  }
}

// True if every rank has equally many tokens for each expert in every slice, as a dry step assumes
// of its peers.
bool is_shared_evenly(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const std::int64_t shares = model.tensor_model_parallel_size * model.context_parallel_size * 2 *
                              config.comm_overlap.moe_token_slices;
  return model.seq_length / shares % (model.experts() / model.moe_router_topk) == 0;
}

// Lengthens sequences until that holds.
config::Config shared_evenly(config::Config config) {
  while (!is_shared_evenly(config)) {
    config.model.seq_length *= 2;
  }
  return config;
}

std::unique_ptr<tensor::Device> dry_device(DeviceKind device) {
  return device == DeviceKind::Cuda ? kernels::make_dry_gpu(tensor::Deterministic::Yes)
                                    : kernels::make_dry_device();
}

Peaks peaks_of_dry_run(const rules::JudgedConfig& run,
                       SharedPlans& plans,
                       int rank,
                       DeviceKind device) {
  const comm::LaunchOptions world{.world = static_cast<int>(derive::layout_of(run).world),
                                  .rank = rank};
  Peaks peaks;
  comm::run_fake(world, [&](comm::Endpoint& endpoint) {
    Engine engine(run,
                  endpoint,
                  dry_device(device),
                  {.weights = InitialWeights::Undefined, .plans = &plans});
    run_even_steps(engine, 1);
    peaks = peaks_of(engine.pool());
  });
  return peaks;
}

}  // namespace

config::Config savings_config(const std::string& attention) {
  config::Config config = deep_config();
  config.model.num_moe_experts = 8;
  config.model.moe_shared_expert_intermediate_size = 16;
  config.model.moe_aux_loss_coeff = {0.02};
  config.model.moe_z_loss_coeff = 0.001;
  config.train.global_batch_size = 8;
  config.model.seq_length = 32;
  if (!attention.empty()) {
    const config::ModelConfig latent = latent_config().model;
    config.model.multi_latent_attention = true;
    if (attention == "latent") config.model.q_lora_rank = latent.q_lora_rank;
    config.model.kv_lora_rank = latent.kv_lora_rank;
    config.model.qk_head_dim = latent.qk_head_dim;
    config.model.qk_pos_emb_head_dim = latent.qk_pos_emb_head_dim;
    config.model.v_head_dim = latent.v_head_dim;
    config.model.qk_layernorm = latent.qk_layernorm;
    config.model.num_query_groups = latent.num_query_groups;
  }
  return config;
}

DrawnSavings draw_run_that_saves(Draw& draw, int most_ranks) {
  for (int refused = 0; refused < 100000; ++refused) {
    Words words = draw_layout(draw, {.most_ranks = most_ranks});
    draw_sharing(draw, words);
    draw_dispatcher(draw, words);
    draw_overlap(draw, words);
    draw_data_parallel(draw, words);
    draw_router(draw, words);
    draw_optimizer_state(draw, words);
    words.emplace_back("runtime.recompute_under_overlap", "true");
    words.emplace_back("runtime.logits_chunk", draw.any_of({"0", "7"}));
    const std::string attention = draw.any_of({"", "latent", "whole queries"});
    if (attention.empty()) {
      words.emplace_back("model.qk_layernorm", draw.any_of({"none", "head", "projection"}));
    }
    config::Config plain = with_words(savings_config(attention), words);
    Words savings = draw_savings(draw, plain);
    draw_optimizer_offload(draw, savings);
    const config::Config saving = with_words(plain, savings);
    // Offloaded state has whole masters, which round differently between two bf16 numbers.
    if (!derive::keeps_remainders(saving)) plain.optimizer.store_param_remainders = false;
    if (!is_legal(plain) || !is_legal(saving)) continue;
    return {plain, saving, attention + " " + text_of(words) + text_of(savings)};
  }
  ADD_FAILURE() << "the rules refuse nearly every run";
  return {savings_config(""), savings_config(""), ""};
}

int savings_wanted() { return few_or_many(2, 60); }

unsigned savings_seed(unsigned otherwise) {
  const char* asked = std::getenv("WEFT_RANDOM_SEED");
  const unsigned seed =
      asked == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(asked, nullptr, 10));
  std::printf("WEFT_RANDOM_SEED=%u\n", seed);
  return seed;
}

std::map<int, Peaks> even_peaks(const config::Config& config, DeviceKind device) {
  std::mutex mutex;
  std::map<int, Peaks> peaks;
  const auto run = [&](Engine& engine) {
    run_even_steps(engine, 2);
    const std::lock_guard lock(mutex);
    peaks[engine.rank()] = peaks_of(engine.pool());
  };
  on_ranks(config, run, {}, device);
  return peaks;
}

Peaks dry_peaks(const config::Config& config, int rank, DeviceKind device) {
  const rules::JudgedConfig run = judged(config);
  SharedPlans plans(run);
  return peaks_of_dry_run(run, plans, rank, device);
}

void expect_predicted(const config::Config& config,
                      const std::map<int, Peaks>& real,
                      DeviceKind device) {
  const rules::JudgedConfig run = judged(config);
  SharedPlans plans(run);
  for (const auto& [rank, peaks] : real) {
    EXPECT_EQ(peaks_of_dry_run(run, plans, rank, device), peaks) << "rank " << rank;
  }
}

void expect_saved(const DrawnSavings& drawn, DeviceKind device) {
  SCOPED_TRACE(devices::name_of(device) + ": " + drawn.text);
  const Outcome saving = train_some(drawn.saving, kSteps, {}, device);
  if (device == DeviceKind::Cpu) {
    expect_same_bits(trained_once(drawn.plain, kSteps), saving);
  } else {
    expect_same_bits(train_some(drawn.plain, kSteps, {}, device), saving);
  }
  const config::Config even = shared_evenly(drawn.saving);
  expect_predicted(even, even_peaks(even, device), device);
}

}  // namespace weft::train
