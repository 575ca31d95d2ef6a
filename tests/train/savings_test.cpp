// Memory saved: no bit changes, and what a step takes is known beforehand to the byte, for
// combinations of savings, layouts and orders drawn at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tests/sanitized.h"
#include "tests/train/even_batch_support.h"
#include "tests/train/random_runs_support.h"
#include "tests/train/train_support.h"
#include "weft/comm/launch.h"
#include "weft/kernels/device.h"

namespace weft::train {
namespace savings_test {

constexpr unsigned kSeed = 20261117;
constexpr std::int64_t kSteps = 2;

config::Config base_config(const std::string& attention) {
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

// Of the experts there is nothing left to be offloaded then.
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
    const bool is_alone = module == "attn_proj" && list.empty();  // Megatron refuses that
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

// Half of the runs keep some or all of the optimizer's state in host memory.
void draw_optimizer_offload(Draw& draw, Words& savings) {
  if (draw.either() == "false") return;
  savings.emplace_back("optimizer.optimizer_cpu_offload", "true");
  savings.emplace_back("optimizer.optimizer_offload_fraction", draw.any_of({"0.3", "1"}));
  savings.emplace_back("optimizer.overlap_cpu_optimizer_d2h_h2d", draw.either());
  savings.emplace_back("runtime.optimizer_offload_bucket_size", draw.any_of({"700", "20000"}));
}

// What ranks that share an optimizer keep of it.
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

// Recomputation, offload, or both.
Words draw_savings(Draw& draw, const config::Config& config) {
  const std::string kind = draw.any_of({"recompute", "offload", "both"});
  Words words;
  if (kind != "offload") words = draw_recomputed(draw, config);
  if (kind != "recompute") draw_offload(draw, words);
  return words;
}

// Of every rank, in the steps of a batch that every rank routes evenly.
std::map<int, Peaks> real_peaks(const config::Config& config) {
  std::mutex mutex;
  std::map<int, Peaks> peaks;
  on_ranks(config, [&](Engine& engine) {
    run_even_steps(engine, 2);
    const std::lock_guard lock(mutex);
    peaks[engine.rank()] = peaks_of(engine.pool());
  });
  return peaks;
}

// Whether every rank has as many tokens for each expert as any other, in every slice: what a dry
// step takes of its peers.
bool is_shared_evenly(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const std::int64_t shares = model.tensor_model_parallel_size * model.context_parallel_size * 2 *
                              config.comm_overlap.moe_token_slices;
  return model.seq_length / shares % (model.experts() / model.moe_router_topk) == 0;
}

void expect_predicted(const config::Config& config, const std::map<int, Peaks>& real) {
  const rules::JudgedConfig run = judged(config);
  const int world = static_cast<int>(real.size());
  for (const int rank : {0, world - 1}) {
    comm::run_fake({.world = world, .rank = rank}, [&](comm::Endpoint& endpoint) {
      Engine engine(run, endpoint, {}, kernels::make_dry_device(), InitialWeights::Undefined);
      run_even_steps(engine, 1);
      EXPECT_EQ(peaks_of(engine.pool()), real.at(rank)) << "rank " << rank;
    });
  }
}

int runs_wanted() {
  const char* asked = std::getenv("WEFT_RANDOM_SAVINGS");  // `make soak` asks for more
  return asked == nullptr ? 12 : std::atoi(asked);
}

TEST(Savings, ChangeNoBitAndTakeWhatIsPredicted) {
  if (kSanitized) GTEST_SKIP() << "skipped: too long under a sanitizer";
  Draw draw(kSeed);
  int refused = 0, predicted = 0;
  for (int tried = 0; tried < runs_wanted();) {
    Words words = draw_layout(draw);
    draw_dispatcher(draw, words);
    draw_overlap(draw, words);
    draw_data_parallel(draw, words);
    draw_optimizer_state(draw, words);
    words.emplace_back("runtime.recompute_under_overlap", "true");
    words.emplace_back("runtime.logits_chunk", draw.any_of({"0", "7"}));
    const config::Config plain =
        with_words(base_config(draw.any_of({"", "latent", "whole queries"})), words);
    Words savings = draw_savings(draw, plain);
    draw_optimizer_offload(draw, savings);
    const config::Config saving = with_words(plain, savings);
    if (!is_legal(plain) || !is_legal(saving)) {
      ASSERT_LT(++refused, 100000) << "the rules refuse nearly every run";
      continue;
    }
    SCOPED_TRACE(text_of(words) + text_of(savings));
    expect_same_bits(train_some(plain, kSteps), train_some(saving, kSteps));
    ++tried;
    if (!is_shared_evenly(saving)) continue;
    expect_predicted(saving, real_peaks(saving));
    ++predicted;
  }
  EXPECT_GE(4 * predicted, runs_wanted());
  std::printf("seed %u: %d runs, the memory of %d of them predicted\n",
              kSeed,
              runs_wanted(),
              predicted);
}

// What each of them frees, of one rank: the forward of a micro-batch keeps less than before.
TEST(Savings, EachModuleKeepsLess) {
  for (const std::string module :
       {"core_attn", "layernorm", "moe_act", "mlp", "moe", "mla_up_proj"}) {
    SCOPED_TRACE(module);
    config::Config config = base_config("latent");
    const Peaks before = real_peaks(config).at(0);
    config = with_words(config,
                        {{"model.recompute_granularity", "selective"},
                         {"model.recompute_modules", "[" + module + "]"}});
    EXPECT_LT(real_peaks(config).at(0).total, before.total);
  }
}

std::size_t offloaded(const Peaks& peaks) {
  return peaks.tags[static_cast<std::size_t>(tensor::Tag::Offloaded)];
}

TEST(Savings, EachOffloadedModuleTakesHostMemoryInsteadOfTheDevices) {
  for (const std::string attention : {"", "latent", "whole queries"}) {
    const config::Config plain = base_config(attention);
    const Peaks before = real_peaks(plain).at(0);
    EXPECT_EQ(offloaded(before), 0u);
    for (const std::string modules : {"core_attn",
                                      "core_attn,attn_proj",
                                      "attn_norm",
                                      "mlp_norm",
                                      "qkv_linear",
                                      "expert_fc1",
                                      "moe_act"}) {
      SCOPED_TRACE(attention + " " + modules);
      const config::Config config =
          with_words(plain,
                     {{"model.fine_grained_activation_offloading", "true"},
                      {"model.offload_modules", "[" + modules + "]"}});
      const std::map<int, Peaks> peaks = real_peaks(config);
      EXPECT_LT(peaks.at(0).total, before.total);
      EXPECT_GT(offloaded(peaks.at(0)), 0u);
      expect_predicted(config, peaks);
    }
  }
}

}  // namespace savings_test
}  // namespace weft::train
