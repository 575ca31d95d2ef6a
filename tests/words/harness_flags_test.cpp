// Flags of the harness: the table, and each flag's effect besides setting its key.
#include "weft/words/harness/harness_flags.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/base/complaints_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/words/perf_recipe.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace harness_flags_test {

namespace fs = std::filesystem;

const fs::path kRecipes = WEFT_SOURCE_DIR "/recipes";

Resolution said(std::string_view words, Audience audience = Audience::Run) {
  return resolve_words(kRecipes, base::split(words, ' '), audience);
}
ModelConfig model(std::string_view words) { return said(words).config.model; }
std::vector<std::string> complaints(std::string_view words, Audience audience = Audience::Run) {
  return complaints_of([&] { said(words, audience); });
}
std::vector<std::string> ids(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& finding : findings) all.push_back(finding.id);
  return all;
}

TEST(HarnessFlags, TheTableIsWholeAndSound) {
  EXPECT_EQ(harness_flags().size(), 134u);
  std::set<std::string_view> names;
  for (const HarnessFlag& flag : harness_flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    const bool fresh = flag.brief.empty() || names.insert(flag.brief).second;
    EXPECT_TRUE(fresh) << flag.brief;
    EXPECT_FALSE(flag.meaning.empty()) << flag.name;
    if (flag.does.kind == Does::Kind::SetsKey) {
      EXPECT_NE(find_field(flag.does.text), nullptr) << flag.name;
    }
    const bool closed = flag.takes == Takes::Word || flag.takes == Takes::Words;
    EXPECT_EQ(flag.words.empty(), !closed) << flag.name;
    if (flag.initial.empty() || flag.takes == Takes::Nothing) continue;
    EXPECT_TRUE(accepted_value(flag, flag.initial)) << flag.name;
  }
}

// Each flag takes some value of its kind, and fails with nothing but a ConfigError.
TEST(HarnessFlags, EveryFlagIsTakenByPerf) {
  for (const HarnessFlag& flag : harness_flags()) {
    if (flag.name == "model_recipe_name" || flag.name == "use_tokendrop") continue;
    std::string words = "--" + std::string(flag.name);
    const std::string first = base::split(flag.words, ' ').front();
    if (flag.takes == Takes::Switch) words += " true";
    if (flag.takes == Takes::Text || flag.takes == Takes::LowerText) words += " some";
    if (flag.takes == Takes::Word || flag.takes == Takes::Words) words += " " + first;
    if (flag.takes == Takes::Number) words += " 0.5";
    if (flag.takes == Takes::Integer || flag.takes == Takes::IntegerOrNone) words += " 2";
    EXPECT_EQ(complaints(words, Audience::Perf), std::vector<std::string>{}) << words;
  }
}

TEST(HarnessFlags, WrongValuesSayWhatIsTaken) {
  EXPECT_TRUE(any_names(complaints("-tp two"), {"-tp two", "an integer"}));
  EXPECT_TRUE(any_names(complaints("--moe_a2a_overlap maybe"), {"true or false"}));
  EXPECT_TRUE(any_names(complaints("-g h1000"), {"-g h1000", "one of h100"}));
  EXPECT_TRUE(any_names(complaints("--cuda_graph_scope attn,all"), {"some of", "moe_router"}));
  EXPECT_TRUE(any_names(complaints("--moe_flex_dispatcher_backend"), {"needs a value"}));
  EXPECT_TRUE(any_names(complaints("--deterministic=yes"), {"takes no value"}));
  EXPECT_TRUE(any_names(complaints("-c fp8 --fp8_recipe xx"), {"fp8_recipe", "one of ds"}));
  // Data that Weft does not read: the run is judged, and not trained.
  EXPECT_TRUE(complaints("--data c4").empty());
  EXPECT_EQ(said("--data c4").config.runtime.unmodelled.size(), 1u);
}

TEST(HarnessFlags, WordsOfEarlierReleasesAreTaken) {
  EXPECT_EQ(said("-c fp8 --fp8_recipe cs").config.model.fp8_recipe, config::Fp8Recipe::Tensorwise);
  EXPECT_EQ(said("--fp8_recipe=mx -c fp8").config.model.fp8_recipe, config::Fp8Recipe::Mxfp8);
  EXPECT_EQ(said("--task lora").harness.task, "peft");
  EXPECT_TRUE(complaints("--hf_home /h --hf_datasets_cache /c").empty());
}

TEST(HarnessFlags, EveryCommandTakesTheRecipeAndPassesOverTheMeasurement) {
  EXPECT_EQ(said("-mr qwen3_30b_a3b -g h100 -ng 16").recipe,
            "qwen3_30b_a3b_pretrain_16gpu_h100_bf16");
  EXPECT_EQ(ids(said("--timing_threshold 0.1").warnings), std::vector<std::string>{"H14"});
  EXPECT_TRUE(said("-m qwen --task pretrain --dryrun").harness.dryrun);
  EXPECT_EQ(said("--timing_threshold 0.1 -cv FSDP", Audience::Perf).harness.timing_threshold, 0.1);
  EXPECT_EQ(said("-cv FSDP", Audience::Perf).harness.config_variant, "fsdp");
}

TEST(HarnessFlags, AUniqueBeginningIsTheFlag) {
  EXPECT_EQ(said("--max_step 30").config.train.train_iters, 30);
  EXPECT_TRUE(any_names(complaints("--moe 1"), {"unknown flag", "--moe"}));
  // Kebab-case belongs to Megatron-LM, whose parser accepts no abbreviations.
  EXPECT_TRUE(any_names(complaints("--max-step 30"), {"unknown flag"}));
}

TEST(HarnessFlags, AModelThatIsNoneNamesItsNeighbours) {
  EXPECT_TRUE(any_names(complaints("-mr 235b_a22b -g h100 -ng 256"), {"qwen3_235b_a22b"}));
}

TEST(HarnessFlags, SecretsAreNotRepeated) {
  const Resolution secret = said("-hf hunter2 -wdk hunter2");
  ASSERT_EQ(secret.warnings.size(), 2u);
  for (const Finding& finding : secret.warnings) {
    EXPECT_EQ(finding.message.find("hunter2"), std::string::npos);
  }
}

TEST(ExpertOverlapFlag, TrueIsMoreThanItsName) {
  const Config on = said("--moe_a2a_overlap true model.num_moe_experts=4").config;
  EXPECT_TRUE(on.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_TRUE(on.comm_overlap.delay_wgrad_compute);
  EXPECT_FALSE(said("model.moe_shared_expert_overlap=true --moe_a2a_overlap true")
                   .config.model.moe_shared_expert_overlap);
}

TEST(ExpertOverlapFlag, FalseSwitchesNothingOffAndSaysSo) {
  const Resolution before =
      said("comm_overlap.overlap_moe_expert_parallel_comm=true --moe_a2a_overlap false");
  EXPECT_TRUE(before.config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_EQ(ids(before.warnings), std::vector<std::string>{"H2"});
  const Resolution after =
      said("--moe_a2a_overlap false comm_overlap.overlap_moe_expert_parallel_comm=true");
  EXPECT_TRUE(after.config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_TRUE(after.warnings.empty()) << "the flag set nothing that could be overridden";
  EXPECT_TRUE(said("--moe_a2a_overlap false").warnings.empty());
}

struct FlexCase {
  const char* name;
  const char* words;
  Dispatcher dispatcher;
  std::optional<FlexBackend> backend;
  bool shared_overlap;
  std::vector<std::string> warnings;
};

class FlexBackendFlag : public testing::TestWithParam<FlexCase> {};

TEST_P(FlexBackendFlag, IsAppliedAsTheReferenceDoes) {
  const FlexCase& expected = GetParam();
  const Resolution got = said(expected.words);
  EXPECT_EQ(got.config.model.moe_token_dispatcher_type, expected.dispatcher);
  EXPECT_EQ(got.config.model.moe_flex_dispatcher_backend, expected.backend);
  EXPECT_EQ(got.config.model.moe_shared_expert_overlap, expected.shared_overlap);
  EXPECT_EQ(ids(got.warnings), expected.warnings);
}

#define WITH_EXPERTS "model.num_moe_experts=8 model.moe_shared_expert_overlap=true "
INSTANTIATE_TEST_SUITE_P(
    Cases,
    FlexBackendFlag,
    testing::Values(
        FlexCase{"FX01DeepEpOnAmpere",
                 WITH_EXPERTS
                 "hardware.compute_capability=8.0 --moe_flex_dispatcher_backend deepep",
                 Dispatcher::Flex,
                 FlexBackend::DeepEp,
                 false,
                 {"W23"}},
        FlexCase{"FX03ReplacesAnotherDispatcher",
                 "model.num_moe_experts=8 model.moe_token_dispatcher_type=allgather "
                 "--moe_flex_dispatcher_backend deepep hardware.gpu=a100",
                 Dispatcher::Flex,
                 FlexBackend::DeepEp,
                 false,
                 {"W23"}},
        FlexCase{"FX05DenseModel",
                 "model.moe_shared_expert_overlap=true --moe_flex_dispatcher_backend deepep",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 true,
                 {"F1"}},
        FlexCase{"NoExpertsAtAll",
                 "model.num_moe_experts=0 --moe_flex_dispatcher_backend deepep",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 false,
                 {"F1"}},
        FlexCase{"FX07DeepEpOnVolta",
                 WITH_EXPERTS
                 "--moe_flex_dispatcher_backend deepep hardware.compute_capability=7.0",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 true,
                 {"F3"}},
        FlexCase{"DeepEpOnGb200",
                 "model.num_moe_experts=8 --moe_flex_dispatcher_backend deepep -g gb200",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 false,
                 {"F3"}},
        FlexCase{"DeepEpOnB300",
                 "model.num_moe_experts=8 --moe_flex_dispatcher_backend deepep -g b300",
                 Dispatcher::Flex,
                 FlexBackend::DeepEp,
                 false,
                 {}},
        FlexCase{"FX16HybridEpOnGb200",
                 WITH_EXPERTS "--moe_flex_dispatcher_backend hybridep -g gb200",
                 Dispatcher::Flex,
                 FlexBackend::HybridEp,
                 false,
                 {"W23"}},
        FlexCase{"HybridEpOnPascal",
                 "model.num_moe_experts=8 --moe_flex_dispatcher_backend hybridep "
                 "hardware.compute_capability=6.1",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 false,
                 {"F4"}},
        FlexCase{"WithoutAGpuItIsAccepted",
                 "model.num_moe_experts=8 --moe_flex_dispatcher_backend hybridep",
                 Dispatcher::Flex,
                 FlexBackend::HybridEp,
                 false,
                 {}},
        FlexCase{"OV01LeftOutKeepsTheRecipes",
                 "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=deepep "
                 "--moe_flex_dispatcher_backend -1",
                 Dispatcher::Flex,
                 FlexBackend::DeepEp,
                 false,
                 {}},
        FlexCase{"OV02NoneIsAllToAll",
                 "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=deepep "
                 "--moe_flex_dispatcher_backend None",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 false,
                 {"W23", "W23"}},
        FlexCase{"TheKeyOnlyNamesABackend",
                 "model.num_moe_experts=8 model.moe_flex_dispatcher_backend=deepep",
                 Dispatcher::AllToAll,
                 FlexBackend::DeepEp,
                 false,
                 {}},
        FlexCase{"OthersAreNotApplied",
                 "model.num_moe_experts=8 --moe_flex_dispatcher_backend ncclep",
                 Dispatcher::AllToAll,
                 std::nullopt,
                 false,
                 {"F5"}}),
    [](const testing::TestParamInfo<FlexCase>& one) { return std::string(one.param.name); });

TEST(FlexBackendFallback, NamesWhereItRunsAndWhatToUse) {
  const Resolution volta = said(
      "model.num_moe_experts=8 --moe_flex_dispatcher_backend deepep "
      "hardware.compute_capability=7.0 hardware.device_name=V100");
  ASSERT_EQ(volta.warnings.size(), 1u);
  for (const char* part : {"Ampere", "Hopper", "B200/B300", "V100"}) {
    EXPECT_NE(volta.warnings[0].message.find(part), std::string::npos) << part;
  }
  const Resolution dense = said("--moe_flex_dispatcher_backend deepep");
  EXPECT_NE(dense.warnings[0].message.find("only applicable to MoE models"), std::string::npos);
}

TEST(SideEffects, RecomputeLayersMeansBlocksOfWholeLayers) {
  const ModelConfig blocks = model("--recompute_num_layers 5");
  EXPECT_EQ(blocks.recompute_granularity, RecomputeGranularity::Full);
  EXPECT_EQ(blocks.recompute_method, RecomputeMethod::Block);
  EXPECT_EQ(blocks.recompute_num_layers, 5);
  const ModelConfig modules = model("--recompute_modules core_attn,moe_act");
  EXPECT_EQ(modules.recompute_granularity, RecomputeGranularity::Selective);
  EXPECT_EQ(modules.recompute_modules->size(), 2u);
}

TEST(SideEffects, TensorParallelBringsSequenceParallel) {
  EXPECT_TRUE(model("-tp 2").sequence_parallel);
  EXPECT_FALSE(model("model.sequence_parallel=true -tp 1").sequence_parallel);
  EXPECT_FALSE(model("model.tensor_model_parallel_size=2").sequence_parallel);
}

TEST(SideEffects, ConnectionsFollowGpuLayoutAndOverlap) {
  const auto connections = [](const std::string& words) {
    return said(words).config.hardware.cuda_device_max_connections;
  };
  EXPECT_EQ(connections("-tp 2 -g gb200"), 32);
  EXPECT_EQ(connections("-tp 2 -g h100"), 1);
  EXPECT_EQ(connections("-cp 2 -g h100"), 1);
  EXPECT_EQ(connections("-tp 1 -g h100"), 8);
  EXPECT_EQ(connections("-tp 2 -g h100 --moe_a2a_overlap true"), 8);
  EXPECT_EQ(connections("-tp 1 -g h100 model.num_moe_experts=8 "
                        "--moe_flex_dispatcher_backend deepep"),
            32);
  EXPECT_EQ(connections("-tp 2 -g a100"), 8);
  EXPECT_EQ(connections("-tp 2"), std::nullopt) << "no GPU";
  EXPECT_EQ(connections("-ep 2 -g h100"), std::nullopt) << "another flag";
  EXPECT_EQ(connections("hardware.cuda_device_max_connections=4 -tp 2 -g h100"), 4);
}

TEST(SideEffects, LayersKeepTheDenseOnes) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(
      model("model.moe_layer_freq=[0,1,1,1] model.num_layers=4 --num_layers 6").moe_layer_freq,
      (List{0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(model("--num_layers 6").moe_layer_freq, List{1});
  EXPECT_EQ(model("--first_k_dense_replace 2 --num_layers 3").moe_layer_freq, (List{0, 0, 1}));
  EXPECT_TRUE(any_names(complaints("--first_k_dense_replace 3"), {"3 dense layers", "0 to 2"}));
  EXPECT_TRUE(complaints("--num_layers 9000000000000 --first_k_dense_replace 1").empty());
}

TEST(SideEffects, GraphsBringTheirRandomState) {
  const Config local = said("--cuda_graph_impl local --cuda_graph_scope full_iteration").config;
  EXPECT_TRUE(local.rng.te_rng_tracker && local.model.use_te_rng_tracker);
  EXPECT_FALSE(said("--cuda_graph_impl none").config.rng.te_rng_tracker);
  EXPECT_TRUE(any_names(complaints("--cuda_graph_scope attn,full_iteration"), {"alone"}));
  EXPECT_TRUE(any_names(
      complaints("--cuda_graph_scope full_iteration --cuda_graph_impl transformer_engine"),
      {"transformer_engine"}));
}

TEST(SideEffects, GraphScopesReplaceWhatTheRecipeSays) {
  const std::vector<CudaGraphScope> attn{CudaGraphScope::Attn};
  for (const char* flag : {"--cuda_graph_scope attn", "--cuda-graph-scope attn"}) {
    const ModelConfig now = model(std::string("model.cuda_graph_modules=[moe_router] "
                                              "model.cuda_graph_scope=[mlp] ") +
                                  flag);
    EXPECT_EQ(now.cuda_graph_modules, attn) << flag;
    EXPECT_TRUE(now.cuda_graph_scope.empty()) << flag;
  }
}

TEST(SideEffects, TokenDropIsCapacityOrForcedBalance) {
  const ModelConfig drops = model("--use_tokendrop true");
  EXPECT_EQ(drops.moe_expert_capacity_factor, 1.0);
  EXPECT_TRUE(drops.moe_pad_expert_input_to_capacity);
  EXPECT_FALSE(drops.moe_router_force_load_balancing);
  const ModelConfig keeps = model("--use_tokendrop false");
  EXPECT_EQ(keeps.moe_expert_capacity_factor, std::nullopt);
  EXPECT_TRUE(keeps.moe_router_force_load_balancing);
  EXPECT_TRUE(any_names(complaints("--use_tokendrop true model.moe_token_dispatcher_type=flex"),
                        {"flex", "alltoall"}));
  EXPECT_TRUE(
      any_names(complaints("--use_tokendrop true model.moe_router_load_balancing_type=sinkhorn"),
                {"sinkhorn", "aux_loss"}));
}

TEST(SideEffects, BundlesSetAllTheirKeys) {
  const Config sharded = said("checkpoint.load=x --use_megatron_fsdp true").config;
  EXPECT_EQ(sharded.ddp.data_parallel_sharding_strategy, ShardingStrategy::OptimGradsParams);
  EXPECT_EQ(sharded.checkpoint.load, "");
  const Resolution deferred =
      said("comm_overlap.defer_embedding_wgrad_compute=true --use_megatron_fsdp true");
  EXPECT_EQ(deferred.config.comm_overlap.defer_embedding_wgrad_compute, false);
  EXPECT_EQ(ids(deferred.warnings), (std::vector<std::string>{"W23", "H8"}));
  const ModelConfig offloads = model("-ol 3");
  EXPECT_TRUE(offloads.cpu_offloading && !offloads.cpu_offloading_weights);
  EXPECT_EQ(offloads.cpu_offloading_num_layers, 3);
  EXPECT_FALSE(
      said("ddp.average_in_collective=true --nccl_ub true").config.ddp.average_in_collective);
  EXPECT_TRUE(model("--deterministic").deterministic_mode);
  const ModelConfig mx = model("-c fp8_mx");
  EXPECT_TRUE(mx.bf16 && mx.fp8 && mx.fp8_recipe == Fp8Recipe::Mxfp8);
  EXPECT_EQ(model("-vp None model.num_layers=4").virtual_pipeline_model_parallel_size,
            std::nullopt);
  EXPECT_EQ(
      model("--virtual-pipeline-model-parallel-size 2 -vp -1").virtual_pipeline_model_parallel_size,
      2);
  EXPECT_EQ(model("--expert-tensor-parallel-size 2 -et").expert_tensor_parallel_size, 2);
}

// Folder with recipes in the harness's naming.
class PerfRecipes : public testing::Test {
 protected:
  PerfRecipes() {
    std::string name = (fs::temp_directory_path() / "weft_perf_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    for (const char* recipe : {"qwen3_30b_a3b_pretrain_16gpu_h100_bf16",
                               "qwen3_30b_a3b_pretrain_64gpu_h100_bf16",
                               "kimi_pretrain_64gpu_h100_fp8cs_fsdp"}) {
      base::write_whole(folder_ / (std::string(recipe) + ".yaml"),
                        "train: {global_batch_size: 192}\n"
                        "model: {tensor_model_parallel_size: 2}\n");
    }
  }
  ~PerfRecipes() override { fs::remove_all(folder_); }

  Resolution said(const std::string& words) const {
    return resolve_words(folder_, base::split(words, ' '), Audience::Perf);
  }
  std::vector<std::string> complaints(const std::string& words) const {
    return complaints_of([&] { said(words); });
  }

  fs::path folder_;
};

TEST_F(PerfRecipes, TheWholeCommandOfTheHarnessIsRead) {
  const Resolution run = said(
      "-m qwen -mr qwen3_30b_a3b --task pretrain -g h100 -c bf16 -ng 16 -gn 8 --max_steps 8 "
      "--config_variant v1 --cuda_graph_impl none --moe_flex_dispatcher_backend None "
      "--moe_a2a_overlap false --tokenizer_type NullTokenizer "
      "comm_overlap.overlap_moe_expert_parallel_comm=true comm_overlap.delay_wgrad_compute=false "
      "model.moe_shared_expert_overlap=false");
  EXPECT_EQ(run.recipe, "qwen3_30b_a3b_pretrain_16gpu_h100_bf16");
  EXPECT_TRUE(run.config.comm_overlap.overlap_moe_expert_parallel_comm);
  EXPECT_FALSE(run.config.comm_overlap.delay_wgrad_compute);
  EXPECT_EQ(run.config.runtime.world_size, 16);
  EXPECT_EQ(run.config.train.train_iters, 8);
  EXPECT_EQ(run.harness.family, "qwen");
  EXPECT_EQ(run.harness.num_gpus, 16);
  EXPECT_TRUE(run.warnings.empty());
}

TEST_F(PerfRecipes, AnotherNumberOfGpusScalesTheBatch) {
  const std::string kimi = "-mr kimi -c fp8_cs -g h100 -cv fsdp -ng 8";
  EXPECT_EQ(said(kimi).recipe, "kimi_pretrain_64gpu_h100_fp8cs_fsdp");
  EXPECT_EQ(said(kimi).config.train.global_batch_size, 24) << "OV-06";
  EXPECT_EQ(said(kimi + " -tp 1").config.train.global_batch_size, 48) << "OV-06";
  EXPECT_EQ(said(kimi + " -gb 7").config.train.global_batch_size, 7);
  const fs::path odd = folder_ / "odd.yaml";
  base::write_whole(odd, "train: {global_batch_size: 5}\n");
  EXPECT_TRUE(any_names(complaints(kimi + " --config-file " + odd.string()), {"does not scale"}));
}

TEST_F(PerfRecipes, TheLargestOrTheHarnesssOwnChoice) {
  EXPECT_EQ(said("-mr qwen3_30b_a3b -g h100 -ng 32").recipe,
            "qwen3_30b_a3b_pretrain_16gpu_h100_bf16");
  EXPECT_TRUE(
      any_names(complaints("-mr qwen3_30b_a3b -g b200 -ng 8"), {"no recipe", "did you mean"}));
  EXPECT_TRUE(any_names(complaints("-mr qwen3_30b_a3b"), {"-g h100 -ng 16"}));
  EXPECT_TRUE(any_names(complaints("other -mr qwen3_30b_a3b -g h100 -ng 16"), {"two recipes"}));
}

Config perf_config(std::vector<std::string> more) {
  std::vector<std::string> words{"-m", "qwen", "-g", "h100", "-c", "bf16"};
  words.insert(words.end(), more.begin(), more.end());
  return resolve_words(kRecipes, words, Audience::Perf).config;
}

TEST(HarnessRecipes, UseRecipesTakesTheTrainingRecipe) {
  const Config flat = perf_config({"-mr", "qwen3_235b_a22b", "-ng", "256"});
  EXPECT_EQ(flat.model.tensor_model_parallel_size, 2);
  EXPECT_EQ(flat.train.global_batch_size, 8192);
  const Config base = perf_config({"-mr", "qwen3_235b_a22b", "-ng", "256", "--use_recipes"});
  EXPECT_EQ(base.model.tensor_model_parallel_size, 4);
  EXPECT_EQ(base.model.pipeline_model_parallel_size, 16);
  EXPECT_EQ(base.train.global_batch_size, 32);
}

TEST(HarnessRecipes, TheFlatRecipesAreNotMixedWithTheOthers) {
  const Config scaled = perf_config({"-mr", "qwen3_30b_a3b", "-ng", "8"});
  EXPECT_EQ(scaled.model.tensor_model_parallel_size, 1);
  EXPECT_EQ(scaled.train.global_batch_size, 512) << "1024 on 16 GPUs, weakly scaled";
}

TEST(HarnessRecipes, AModelWithoutFlatRecipesRunsItsTrainingRecipe) {
  EXPECT_EQ(perf_config({"-mr", "olmoe_7b", "-ng", "8"}).train.global_batch_size, 2048);
}

}  // namespace harness_flags_test
}  // namespace weft::words
