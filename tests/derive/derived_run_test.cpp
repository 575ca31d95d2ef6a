#include "weft/derive/derived_run.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "weft/derive/derived.h"
#include "weft/derive/parameter_list.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::derive {

using namespace config;
namespace derived_run_test {

Config with(const std::vector<std::string>& overrides) { return words::with_words({}, overrides); }

Config shipped(const char* name) {
  return words::load_config(words::find_recipe(WEFT_SOURCE_DIR "/recipes", name));
}

std::int64_t sum_of(const std::vector<RankParameters>& ranks) {
  std::int64_t sum = 0;
  for (const RankParameters& rank : ranks) sum += rank.total();
  return sum;
}

constexpr double kMiB = 1 << 20;

TEST(DerivedRun, PipelineRanksHoldTheModelOnce) {
  const Config plain = with({"model.num_layers=4",
                             "model.num_moe_experts=4",
                             "model.moe_layer_freq=[0,1,1,1]",
                             "model.pipeline_model_parallel_size=2",
                             "model.virtual_pipeline_model_parallel_size=2"});
  EXPECT_EQ(sum_of(rank_parameters(plain)), parameters_of(plain.model).total);
  const std::int64_t table = plain.model.vocab_size * plain.model.hidden_size;
  Config tied = plain;
  tied.model.share_embeddings_and_output_weights = true;
  EXPECT_EQ(sum_of(rank_parameters(tied)), parameters_of(tied.model).total + table)
      << "the head's copy";
  Config ahead = plain;
  ahead.model.mtp_num_layers = 1;
  EXPECT_EQ(sum_of(rank_parameters(ahead)), parameters_of(ahead.model).total + table)
      << "the embedding that multi-token prediction reads";
  tied.model.pipeline_model_parallel_size = 1;
  tied.model.virtual_pipeline_model_parallel_size = std::nullopt;
  EXPECT_EQ(sum_of(rank_parameters(tied)), parameters_of(tied.model).total);
}

TEST(DerivedRun, ExpertsAreSharedByEpAndDenseLayersByTp) {
  Config config = with({"model.num_layers=1", "model.num_moe_experts=4"});
  const RankParameters whole = rank_parameters(config)[0];
  config.model.expert_model_parallel_size = 4;
  EXPECT_EQ(rank_parameters(config)[0].experts, whole.experts / 4);
  EXPECT_EQ(rank_parameters(config)[0].dense, whole.dense);
  config.model.tensor_model_parallel_size = 2;
  // Every rank holds the norms and the router whole.
  const std::int64_t h = config.model.hidden_size, replicated = 3 * h + 4 * h;
  EXPECT_EQ(rank_parameters(config)[0].dense, (whole.dense - replicated) / 2 + replicated);
}

// Parameters that the engine allocates, by pipeline rank.
std::vector<RankParameters> listed_parameters(const Config& config) {
  std::vector<RankParameters> ranks;
  for (int rank = 0; rank < config.model.pipeline_model_parallel_size; ++rank) {
    RankParameters held;
    for (const ParameterSpec& spec :
         list_parameters(config.model, holding_of(config.model, rank), {})) {
      const std::int64_t elements = spec.slice.elements.count;
      if (spec.home == Home::Dense) held.dense += elements;
      if (spec.home == Home::Expert) held.experts += elements;
      if (spec.home == Home::Untrained) held.untrained += elements;
    }
    ranks.push_back(held);
  }
  return ranks;
}

TEST(DerivedRun, ARankHoldsWhatTheEngineAllocates) {
  const std::vector<std::string> model{"model.num_layers=5",
                                       "model.num_moe_experts=8",
                                       "model.moe_layer_freq=[0,1,1,1,1]",
                                       "model.moe_shared_expert_intermediate_size=32",
                                       "model.moe_router_enable_expert_bias=true",
                                       "model.num_attention_heads=8",
                                       "model.num_layers_in_first_pipeline_stage=2"};
  const std::vector<std::vector<std::string>> attentions{
      {"model.multi_latent_attention=true", "model.q_lora_rank=24", "model.kv_lora_rank=16"},
      {"model.multi_latent_attention=true", "model.kv_lora_rank=16"},
      {"model.num_query_groups=2", "model.qk_layernorm=projection"},
      {"model.num_query_groups=2", "model.qk_layernorm=head"}};
  const std::vector<std::vector<std::string>> layouts{{"tp=1", "pp=2"},
                                                      {"tp=2", "pp=2", "ep=4", "etp=2", "cp=2"},
                                                      {"tp=4", "pp=2", "ep=8", "etp=1", "cp=2"},
                                                      {"tp=8", "pp=2", "ep=2", "etp=4"}};
  for (const auto& attention : attentions) {
    for (const auto& layout : layouts) {
      std::vector<std::string> all = model;
      all.insert(all.end(), attention.begin(), attention.end());
      all.insert(all.end(), layout.begin(), layout.end());
      const Config config = with(all);
      const std::vector<RankParameters> derived = rank_parameters(config);
      const std::vector<RankParameters> listed = listed_parameters(config);
      ASSERT_EQ(derived.size(), listed.size());
      for (std::size_t rank = 0; rank < derived.size(); ++rank) {
        const std::string place = attention.front() + ", " + layout.front();
        EXPECT_EQ(derived[rank].dense, listed[rank].dense) << place << ", stage " << rank;
        EXPECT_EQ(derived[rank].experts, listed[rank].experts) << place << ", stage " << rank;
        EXPECT_EQ(derived[rank].untrained, listed[rank].untrained) << place << ", stage " << rank;
      }
    }
  }
}

TEST(DerivedRun, BytesOfAParameter) {
  const RankParameters ranks{.dense = 1000, .experts = 0};
  EXPECT_EQ(state_bytes(with({}), ranks).total(), 16000);
  EXPECT_EQ(state_bytes(with({"model.bf16=true"}), ranks).total(), 18000);
  const std::vector<std::string> sharded{"model.bf16=true",
                                         "ddp.use_distributed_optimizer=true",
                                         "runtime.world_size=8"};
  EXPECT_EQ(state_bytes(with(sharded), ranks).total(), 6000 + 12000 / 8);
  EXPECT_EQ(state_bytes(with({"ddp.use_distributed_optimizer=true", "world=4"}), ranks).total(),
            8000 + 8000 / 4);
  const std::vector<std::string> narrow{"model.bf16=true",
                                        "ddp.grad_reduce_in_fp32=false",
                                        "ddp.use_distributed_optimizer=true",
                                        "world=4"};
  EXPECT_EQ(state_bytes(with(narrow), ranks).total(), 6000 + 12000 / 4) << "what travels is none";
}

TEST(DerivedRun, BytesOfASmallerOptimizer) {
  const auto optimizer_bytes = [](std::vector<std::string> words) {
    words.emplace_back("optimizer.use_precision_aware_optimizer=true");
    return bytes_of_parameter(with(words)).optimizer;
  };
  EXPECT_EQ(optimizer_bytes({}), 8) << "fp32 weights are their own masters";
  EXPECT_EQ(optimizer_bytes({"optimizer.exp_avg_dtype=fp16"}), 6);
  EXPECT_EQ(optimizer_bytes({"model.bf16=true"}), 10);
  EXPECT_EQ(optimizer_bytes({"model.params_dtype=bf16"}), 10);
  EXPECT_EQ(optimizer_bytes({"model.bf16=true", "optimizer.store_param_remainders=false"}), 12);
  EXPECT_EQ(
      optimizer_bytes(
          {"model.bf16=true", "optimizer.exp_avg_dtype=bf16", "optimizer.exp_avg_sq_dtype=bf16"}),
      6);
  EXPECT_EQ(bytes_of_parameter(with({"optimizer.exp_avg_dtype=bf16"})).optimizer, 8)
      << "a key that no switch turns on";
}

TEST(DerivedRun, OffloadedStateIsTheHosts) {
  const RankParameters ranks{.dense = 1000, .experts = 3000};
  const std::string offload = "optimizer.optimizer_cpu_offload=true";
  const StateBytes half =
      state_bytes(with({"model.bf16=true", offload, "optimizer.optimizer_offload_fraction=0.5"}),
                  ranks);
  EXPECT_EQ(half.total(), 4000 * 6 + 2000 * 12);
  EXPECT_EQ(half.offloaded, 2000 * 12);
  const StateBytes all =
      state_bytes(with({offload, "optimizer.optimizer_offload_fraction=1"}), ranks);
  EXPECT_EQ(all.total(), 4000 * 8) << "without moments";
  EXPECT_EQ(all.offloaded, 4000 * 12) << "moments and a copy of the weights";
  EXPECT_EQ(state_bytes(with({"optimizer.optimizer_offload_fraction=1"}), ranks).offloaded, 0);
}

TEST(DerivedRun, ExpertStateIsSharedByFewerRanks) {
  const std::vector<std::string> sharded{"model.bf16=true",
                                         "ddp.use_distributed_optimizer=true",
                                         "model.num_moe_experts=4",
                                         "model.expert_model_parallel_size=4",
                                         "runtime.world_size=8"};
  const StateBytes bytes = state_bytes(with(sharded), {.dense = 0, .experts = 1000});
  EXPECT_EQ(bytes.optimizer, 12000 / 2) << "edp = 2";
}

TEST(DerivedRun, StateIsSharedInsideAnInstance) {
  const std::vector<std::string> sharded{"model.bf16=true",
                                         "ddp.use_distributed_optimizer=true",
                                         "ddp.num_distributed_optimizer_instances=2",
                                         "model.num_moe_experts=4",
                                         "model.expert_model_parallel_size=2",
                                         "runtime.world_size=8"};
  const StateBytes dense = state_bytes(with(sharded), {.dense = 1000, .experts = 0});
  EXPECT_EQ(dense.total(), 6000 + 12000 / 4);
  const StateBytes expert = state_bytes(with(sharded), {.dense = 0, .experts = 1000});
  EXPECT_EQ(expert.total(), 6000 + 12000 / 2) << "edp = 4";
}

TEST(DerivedRun, DistinctRanksOfAToken) {
  EXPECT_NEAR(distinct_parts(256, 8, 2), 1.993, 5e-4);
  EXPECT_NEAR(distinct_parts(256, 8, 16), 6.523, 5e-4);
  EXPECT_NEAR(distinct_parts(256, 8, 64), 7.676, 5e-4);
  EXPECT_NEAR(distinct_parts(128, 8, 8), 5.339, 5e-4);
  EXPECT_NEAR(distinct_parts(512, 10, 8), 5.922, 5e-4);
  EXPECT_DOUBLE_EQ(distinct_parts(8, 2, 8), 2);
  EXPECT_DOUBLE_EQ(distinct_parts(8, 2, 1), 1);
  EXPECT_DOUBLE_EQ(distinct_parts(4, 4, 2), 2) << "more experts than another part has";
}

// 4096 tokens of 7168 bf16 channels to 8 of 256 experts, 8 GPUs per machine.
TEST(DerivedRun, BytesOfADispatch) {
  struct Case {
    int ep;
    double all, all_between, once,
        once_between;  // MiB: one row per expert, and one row per rank or machine
  };
  for (const Case& c : {Case{8, 392, 0, 259.4, 0},
                        Case{16, 420, 224, 342.5, 55.8},
                        Case{32, 434, 336, 394.2, 151.8},
                        Case{64, 441, 392, 423.1, 259.4}}) {
    Config config = shipped("deepseek_v3");
    config.model.tensor_model_parallel_size = 1;
    config.model.sequence_parallel = false;
    config.model.expert_model_parallel_size = c.ep;
    config.runtime.world_size = std::nullopt;
    const DispatchNumbers once = dispatch_of(config);
    EXPECT_EQ(once.tokens, 4096);
    EXPECT_NEAR(once.bytes / kMiB, c.once, 0.06) << c.ep;
    EXPECT_NEAR(once.bytes_between_machines / kMiB, c.once_between, 0.06) << c.ep;
    config.model.moe_token_dispatcher_type = Dispatcher::AllToAll;
    const DispatchNumbers all = dispatch_of(config);
    EXPECT_DOUBLE_EQ(all.rows, 4096.0 * 8 * (c.ep - 1) / c.ep);
    EXPECT_NEAR(all.bytes / kMiB, c.all, 0.06) << c.ep;
    EXPECT_NEAR(all.bytes_between_machines / kMiB, c.all_between, 0.06) << c.ep;
  }
}

TEST(DerivedRun, ARackIsOneMachineToADispatch) {
  EXPECT_EQ(dispatch_of(shipped("deepseek_v3_pretrain_256gpu_gb200_bf16")).machines, 1);
  EXPECT_EQ(dispatch_of(shipped("deepseek_v3_pretrain_1024gpu_h100_bf16")).machines, 8);
  EXPECT_EQ(dispatch_of(shipped("deepseek_v3_pretrain_1024gpu_h100_bf16")).tokens, 2048);
}

// 64 tokens to 8 of 64 experts on 8 ranks. Groups are spread differently: the rank that sends most
// to other machines counts.
TEST(DerivedRun, RowsBetweenMachinesAreThoseOfTheRealMembers) {
  for (const char* dispatcher : {"alltoall", "allgather", "flex"}) {
    // Ranks per machine, and the fewest members in a rank's machine: 12 makes [8], [4 4], [8]; 6
    // makes [6 2], [4 4], [2 6]; 3 makes [3 3 2], [1 3 3 1], [2 3 3].
    for (const auto& [per_machine, beside] :
         std::map<int, int>{{24, 8}, {12, 4}, {8, 8}, {6, 2}, {4, 4}, {3, 1}, {2, 2}, {1, 1}}) {
      const DispatchNumbers sent =
          dispatch_of(with({"model.num_moe_experts=64",
                            "model.moe_router_topk=8",
                            "model.expert_model_parallel_size=8",
                            "model.seq_length=64",
                            "runtime.world_size=24",
                            "model.moe_flex_dispatcher_backend=deepep",
                            std::string("model.moe_token_dispatcher_type=") + dispatcher,
                            "runtime.ranks_per_node=" + std::to_string(per_machine)}));
      // deepep crosses once per machine if every group is spread equally over several machines.
      const bool passes_on =
          dispatcher == std::string("flex") && (per_machine == 4 || per_machine == 2);
      if (passes_on) {
        EXPECT_LT(sent.rows_between_machines, 0.8 * sent.rows * (8 - beside) / 7) << per_machine;
        continue;
      }
      EXPECT_NEAR(sent.rows_between_machines, sent.rows * (8 - beside) / 7, 1e-9)
          << dispatcher << ", " << per_machine;
    }
  }
}

TEST(DerivedRun, WithoutExpertParallelismNothingTravels) {
  EXPECT_EQ(dispatch_of(with({"model.num_moe_experts=4"})).rows, 0);
  EXPECT_EQ(dispatch_of(with({})).bytes, 0);
}

TEST(DerivedRun, OfALargeLayout) {
  const DerivedRun run = derived_run(shipped("deepseek_v3_pretrain_1024gpu_h100_bf16"));
  EXPECT_EQ(run.dp, 64);
  EXPECT_EQ(run.edp, 2);
  EXPECT_EQ(run.vpp, 4);
  EXPECT_EQ(run.micro_batches, 256);
  EXPECT_EQ(run.tokens_per_step, 16384 * 4096);
  ASSERT_EQ(run.ranks.size(), 8u);
  EXPECT_EQ(run.ranks[0].stages.size(), 4u);
  EXPECT_TRUE(run.ranks[0].stages[0].embedding);
  EXPECT_EQ(run.ranks[7].stages[3].mtp_layers, 1);
}

TEST(DerivedRun, JsonAndTextHaveTheNumbers) {
  const DerivedRun run = derived_run(shipped("qwen3_30b_a3b"));
  const base::Json json = to_json(run);
  EXPECT_EQ(json["grid"]["edp"], 1);
  EXPECT_EQ(json["grid"]["dp"], 16);
  EXPECT_EQ(json["parameters"]["total"], 30532122624);
  EXPECT_EQ(json["pipeline_ranks"].size(), 1u);
  EXPECT_EQ(json["dispatch"]["nodes"], 2);
  const std::string text = to_text(run);
  for (const char* part : {"16 ranks", "30.53 B", "23.0063 G", "2 machines", "64 micro-batches"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(DerivedRun, PipelineRanksThatAreAlikeShareALine) {
  const std::string text =
      to_text(derived_run(shipped("qwen3_235b_a22b_pretrain_64gpu_b200_fp8cs")));
  EXPECT_NE(text.find("pp ranks 1-6"), std::string::npos) << text;
}

}  // namespace derived_run_test
}  // namespace weft::derive
