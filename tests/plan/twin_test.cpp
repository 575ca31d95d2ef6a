#include "weft/plan/tuning/twin.h"

#include <gtest/gtest.h>

#include "weft/config/dump.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::plan {

using namespace config;
namespace twin_test {

// Qwen3-30B-A3B on 16 H100.
const std::vector<std::string> kQwen{"hardware.gpu=h100",
                                     "model.num_layers=48",
                                     "model.hidden_size=2048",
                                     "model.ffn_hidden_size=6144",
                                     "model.num_attention_heads=32",
                                     "model.num_query_groups=4",
                                     "model.kv_channels=128",
                                     "model.qk_layernorm=head",
                                     "model.seq_length=4096",
                                     "model.vocab_size=151936",
                                     "model.bf16=true",
                                     "model.params_dtype=bf16",
                                     "model.num_moe_experts=128",
                                     "model.moe_ffn_hidden_size=768",
                                     "model.moe_router_topk=8",
                                     "model.expert_model_parallel_size=16",
                                     "runtime.world_size=16",
                                     "train.micro_batch_size=1",
                                     "train.global_batch_size=1024",
                                     "comm_overlap.overlap_moe_expert_parallel_comm=true"};

// Shape of DeepSeek-V3 on 256 GPUs, with many missing parts.
const std::vector<std::string> kDeepSeek{"hardware.gpu=gb200",
                                         "model.num_layers=61",
                                         "model.hidden_size=7168",
                                         "model.ffn_hidden_size=18432",
                                         "model.num_attention_heads=128",
                                         "model.multi_latent_attention=true",
                                         "model.q_lora_rank=1536",
                                         "model.seq_length=4096",
                                         "model.vocab_size=129280",
                                         "model.bf16=true",
                                         "model.params_dtype=bf16",
                                         "model.num_moe_experts=256",
                                         "model.moe_ffn_hidden_size=2048",
                                         "model.moe_router_topk=8",
                                         "model.moe_router_score_function=sigmoid",
                                         "model.moe_router_load_balancing_type=seq_aux_loss",
                                         "model.moe_aux_loss_coeff=0.0001",
                                         "model.moe_shared_expert_intermediate_size=2048",
                                         "model.pipeline_model_parallel_size=16",
                                         "model.pipeline_model_parallel_layout=Ettt|(tt|)*28t|t|L",
                                         "model.expert_model_parallel_size=64",
                                         "runtime.world_size=1024",
                                         "train.micro_batch_size=1",
                                         "train.global_batch_size=1024"};

Config of(std::vector<std::string> words, const std::vector<std::string>& more = {}) {
  words.insert(words.end(), more.begin(), more.end());
  return words::with_words({}, words);
}

Config deep_seek() {
  Config config = of(kDeepSeek);
  std::vector<std::int64_t> kinds(61, 1);
  kinds[0] = kinds[1] = kinds[2] = 0;
  config.model.moe_layer_freq = kinds;
  return config;
}

std::string trouble(const Config& config) {
  const rules::Verdict verdict = rules::judge(config);
  std::string all;
  for (const Finding& error : verdict.errors) all += to_text(error) + "\n";
  for (const rules::Missing& part : verdict.missing) all += part.message + "\n";
  return all;
}

TEST(Twin, TheConfigsOfTheseTestsAreLegalAndDoNotRun) {
  for (const Config& asked : {of(kQwen), deep_seek()}) {
    const rules::Verdict verdict = rules::judge(asked);
    EXPECT_TRUE(verdict.legal()) << trouble(asked);
    EXPECT_FALSE(verdict.runs());
  }
}

TEST(Twin, OfEveryRecipeRuns) {
  for (const auto& file : words::recipe_files(WEFT_SOURCE_DIR "/recipes")) {
    const Twin twin = twin_of(words::load_config(file));
    EXPECT_EQ(trouble(twin.config), "") << file;
    EXPECT_LE(derive::layout_of(twin.config).world, kMostTwinRanks) << file;
  }
}

TEST(Twin, OfARunForGpusKeepsExpertsPatternOverlapAndMicroBatches) {
  const Twin twin = twin_of(of(kQwen));
  ASSERT_EQ(trouble(twin.config), "");
  const ModelConfig& model = twin.config.model;
  EXPECT_EQ(model.num_moe_experts, 128);
  EXPECT_EQ(model.moe_router_topk, 8);
  EXPECT_EQ(model.expert_model_parallel_size, 16);
  EXPECT_EQ(model.params_dtype, base::DType::BF16);
  EXPECT_EQ(model.qk_layernorm, QkNorm::Head);
  EXPECT_TRUE(twin.config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_EQ(derive::micro_batches(twin.config.train, 16), kMostTwinBatches);
  EXPECT_FALSE(derive::is_on_gpu(twin.config));
  EXPECT_LE(model.hidden_size, 64);
  EXPECT_LT(static_cast<double>(derive::parameters_of(model).total), 5e6);
}

TEST(Twin, OfAPipelineKeepsStagesChunksAndDenseFirstLayers) {
  const Twin twin = twin_of(deep_seek());
  ASSERT_EQ(trouble(twin.config), "");
  const ModelConfig& model = twin.config.model;
  EXPECT_EQ(model.pipeline_model_parallel_size, 4);
  EXPECT_EQ(model.expert_model_parallel_size, 4);
  EXPECT_EQ(model.virtual_pipeline_model_parallel_size, 2);
  EXPECT_EQ(model.num_layers, 8);
  EXPECT_FALSE(model.is_moe_layer(0));
  EXPECT_EQ(model.moe_layers(), 7);
  EXPECT_EQ(model.num_moe_experts, 256);
  EXPECT_TRUE(model.multi_latent_attention);
  EXPECT_EQ(model.q_lora_rank, 24);
}

TEST(Twin, WishesForWhatIsNotBuiltAreDroppedAndSaid) {
  const Config asked = of(kQwen,
                          {"model.moe_token_dispatcher_type=flex",
                           "model.moe_flex_dispatcher_backend=hybridep",
                           "model.recompute_granularity=selective",
                           "model.recompute_modules=[layernorm]",
                           "model.fp8=hybrid",
                           "model.fp8_recipe=tensorwise",
                           "ddp.use_distributed_optimizer=true",
                           "comm_overlap.overlap_grad_reduce=true"});
  const Twin twin = twin_of(asked);
  EXPECT_EQ(trouble(twin.config), "");
  EXPECT_EQ(twin.config.model.moe_token_dispatcher_type, Dispatcher::Flex);
  EXPECT_EQ(twin.config.model.moe_flex_dispatcher_backend, FlexBackend::HybridEp);
  EXPECT_EQ(twin.config.model.recompute_modules, asked.model.recompute_modules);
  for (const char* key :
       {"hardware.gpu", "runtime.ranks_per_node", "model.fp8", "model.fp8_recipe"}) {
    const auto at = std::ranges::find(twin.changes, key, &Change::key);
    ASSERT_NE(at, twin.changes.end()) << key;
    EXPECT_FALSE(at->why.empty()) << key;
    EXPECT_EQ(at->from, find_field(key)->get(asked)) << key;
    EXPECT_EQ(at->to, find_field(key)->get(twin.config)) << key;
  }
}

// The key stays if the twin has fewer instances.
TEST(Twin, HasAsManyInstancesOfTheOptimizerAsItsRanksMake) {
  for (const auto& [experts, kept] : {std::pair{4, 4}, {2, 8}}) {
    const Twin twin = twin_of(of(kQwen,
                                 {"runtime.world_size=64",
                                  base::text("model.expert_model_parallel_size={}", experts),
                                  "ddp.use_distributed_optimizer=true",
                                  "ddp.num_distributed_optimizer_instances=16"}));
    EXPECT_EQ(trouble(twin.config), "");
    EXPECT_EQ(twin.config.ddp.num_distributed_optimizer_instances, kept);
    EXPECT_TRUE(std::ranges::none_of(twin.given_up, [](const std::string& word) {
      return word.starts_with("ddp.num_distributed_optimizer_instances");
    }));
  }
}

TEST(Twin, EveryDifferenceIsAmongTheChangesAndNothingElse) {
  for (const Config& asked : {of(kQwen), deep_seek(), Config()}) {
    const Twin twin = twin_of(asked);
    std::size_t differences = 0;
    for (const Field& field : fields()) {
      differences += field.get(asked) != field.get(twin.config) ? 1 : 0;
    }
    EXPECT_EQ(twin.changes.size(), differences);
    EXPECT_EQ(to_json(twin_of(asked).config), to_json(twin.config));
  }
}

TEST(Twin, OfATwinIsItself) {
  for (const Config& asked : {of(kQwen), deep_seek()}) {
    const Config twin = twin_of(asked).config;
    EXPECT_EQ(to_yaml(twin_of(twin).config), to_yaml(twin));
  }
}

TEST(Twin, LayoutsBeyondSixteenRanksFitAndStayPipelines) {
  for (const int pp : {1, 2, 3, 7, 16}) {
    for (const int ep : {1, 2, 6, 64}) {
      Config config = of(kQwen);
      config.model.num_layers = 336;
      config.model.num_moe_experts = 192;
      config.model.pipeline_model_parallel_size = pp;
      if (pp > 1) config.model.virtual_pipeline_model_parallel_size = 3;
      config.model.expert_model_parallel_size = ep;
      config.runtime.world_size = std::nullopt;
      config.comm_overlap.overlap_moe_expert_parallel_comm = ep > 1;
      config.train.global_batch_size = 64 * 336;
      const Config twin = twin_of(config).config;
      EXPECT_EQ(trouble(twin), "") << pp << " " << ep;
      EXPECT_LE(derive::layout_of(twin).world, kMostTwinRanks) << pp << " " << ep;
      EXPECT_EQ(twin.model.pipeline_model_parallel_size > 1, pp > 1);
      EXPECT_EQ(twin.model.expert_model_parallel_size > 1, ep > 1);
      EXPECT_EQ(twin.comm_overlap.overlap_moe_expert_parallel_comm, ep > 1);
    }
  }
}

TEST(Twin, KeepsEveryAxisOfAFoldedLayout) {
  const Config asked = of(kQwen,
                          {"model.num_query_groups=8",
                           "model.tensor_model_parallel_size=4",
                           "model.sequence_parallel=true",
                           "model.context_parallel_size=4",
                           "model.cp_comm_type=a2a+p2p",
                           "model.hierarchical_context_parallel_sizes=[2,2]",
                           "model.pipeline_model_parallel_size=2",
                           "model.virtual_pipeline_model_parallel_size=2",
                           "model.expert_model_parallel_size=32",
                           "model.expert_tensor_parallel_size=4",
                           "ddp.use_distributed_optimizer=true",
                           "comm_overlap.overlap_grad_reduce=true",
                           "runtime.world_size=256"});
  ASSERT_TRUE(rules::judge(asked).legal()) << trouble(asked);
  const Twin twin = twin_of(asked);
  EXPECT_EQ(trouble(twin.config), "");
  EXPECT_EQ(twin.given_up, std::vector<std::string>());
  const grid::Layout layout = derive::layout_of(twin.config);
  EXPECT_EQ(layout.tp, 2);
  EXPECT_EQ(layout.cp, 4);
  EXPECT_EQ(layout.pp, 2);
  EXPECT_EQ(layout.ep, 4);
  EXPECT_EQ(layout.etp, 2);
  EXPECT_EQ(layout.world, kMostTwinRanks);
  EXPECT_EQ(twin.config.model.query_groups(), 4) << "one for each rank that has heads";
  EXPECT_TRUE(twin.config.comm_overlap.overlap_grad_reduce);
}

}  // namespace twin_test
}  // namespace weft::plan
