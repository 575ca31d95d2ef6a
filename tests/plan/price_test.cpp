#include "weft/plan/price/price.h"

#include <gtest/gtest.h>

#include <chrono>

#include "weft/derive/derived.h"
#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/price/price_memory.h"

namespace weft::plan {
namespace price_test {

const std::filesystem::path kFolder = std::filesystem::path(WEFT_SOURCE_DIR) / "hardware";

Hardware gpu(const std::string& name) { return find_hardware(kFolder, name); }

// Qwen3-30B-A3B on 16 GPUs.
config::Config qwen() {
  config::Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 48;
  model.hidden_size = 2048;
  model.num_attention_heads = 32;
  model.num_query_groups = 4;
  model.kv_channels = 128;
  model.qk_layernorm = config::QkNorm::Head;
  model.seq_length = 4096;
  model.vocab_size = 151936;
  model.num_moe_experts = 128;
  model.moe_ffn_hidden_size = 768;
  model.moe_router_topk = 8;
  model.expert_model_parallel_size = 16;
  model.bf16 = true;
  model.params_dtype = base::DType::BF16;
  config.train.micro_batch_size = 1;
  config.train.global_batch_size = 1024;
  config.ddp.use_distributed_optimizer = true;
  config.runtime.world_size = 16;
  return config;
}

config::Config merged(config::Config config) {
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  return config;
}

// 61 layers in 16 x 2 stages, 128 micro-batches.
config::Config deep() {
  config::Config config = qwen();
  config.model.num_layers = 61;
  config.model.pipeline_model_parallel_size = 16;
  config.model.virtual_pipeline_model_parallel_size = 2;
  config.model.pipeline_model_parallel_layout = "Et|(tt|)*30L";
  config.runtime.world_size = 256;
  config.train.global_batch_size = 128 * 16;
  return config;
}

TEST(Price, GraphsKeepMemoryAndMoreOfItInAPipeline) {
  const auto graphs = [](config::Config config, config::CudaGraphImpl impl) {
    config.model.cuda_graph_impl = impl;
    return price_memory(config, gpu("h100"), {}).graphs;
  };
  EXPECT_EQ(graphs(qwen(), config::CudaGraphImpl::None), 0);
  const double alone = graphs(qwen(), config::CudaGraphImpl::TransformerEngine);
  EXPECT_GT(alone, 0);
  EXPECT_GT(graphs(deep(), config::CudaGraphImpl::TransformerEngine), alone);
  EXPECT_EQ(graphs(deep(), config::CudaGraphImpl::FullIteration), alone);
}

// Features that only GPT-OSS has: biases, a clamped activation of many kernels, narrow heads.
TEST(Price, PartsOfAModelThatAreNotFusedTakeTime) {
  const double plain = price_run(qwen(), gpu("h100")).step_ms;
  config::Config clamped = qwen(), narrow = qwen();
  clamped.model.activation_func_clamp_value = 7;
  narrow.model.kv_channels = 64;
  narrow.model.num_attention_heads = 64;
  narrow.model.num_query_groups = 8;
  // Clamps, and joining the halves: the rest is one kernel.
  EXPECT_GT(price_run(clamped, gpu("h100")).step_ms, 1.03 * plain);
  // A bias is added expert by expert: many local experts are many calls.
  const auto with_bias = [&](std::int64_t ep) {
    config::Config few = qwen();
    few.model.expert_model_parallel_size = ep;
    const double without = price_run(few, gpu("gb200")).step_ms;
    few.model.add_bias_linear = true;
    return price_run(few, gpu("gb200")).step_ms / without;
  };
  EXPECT_GT(with_bias(16), 1.02);
  EXPECT_GT(with_bias(4), with_bias(16) + 0.02);
  EXPECT_GT(price_run(narrow, gpu("h100")).step_ms, 1.01 * plain);
}

TEST(Price, MultiTokenPredictionAddsLaunchesOfItsNormsAndItsProduct) {
  const config::Config config = qwen();
  double launches = 0;
  for (const Kernel& kernel : mtp_kernels(config, workload_of(config))) launches += kernel.launches;
  // Six each way for the norms, and one for each direction of the product.
  EXPECT_EQ(launches, 2 * 6 + 3);
}

// Step at nominal costs, on machines of `gpus` GPUs.
double nominal_ms(config::Config config, config::Gpu gpu, std::int64_t gpus) {
  config.hardware.gpu = gpu;
  config.runtime.ranks_per_node = gpus;
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans =
      schedule::plan_step(config, grid, config::RowBudget::AsConfigured, {});
  return simulate_nominal(config, grid, plans, rates_of(config.hardware)).step_seconds() * 1e3;
}

// NVLink joins 18 machines of GB200: such a step crosses no network, in either model.
TEST(Price, AStepOnGb200IsNearItsNominalOne) {
  config::Config run = qwen();
  run.train.global_batch_size = 4 * 16;
  const auto ratio = [&](config::Gpu nominal, const char* planned, std::int64_t gpus) {
    return price_step(run, gpu(planned)).step_ms / nominal_ms(run, nominal, gpus);
  };
  const double joined = ratio(config::Gpu::Gb200, "gb200", 4);
  EXPECT_GT(joined, 1) << "no step is as fast as advertised";
  EXPECT_LT(joined, 6);
  // Experts on 16 ranks of H100 cross the network, in either model.
  const double apart = ratio(config::Gpu::H100, "h100", 8);
  EXPECT_GT(apart, 1);
  EXPECT_LT(apart, 6);
  // A domain of 72 has 64 ranks of a run of 128, so experts on 64 ranks are within one.
  run.model.expert_model_parallel_size = 64;
  run.runtime.world_size = 128;
  run.train.global_batch_size = 4 * 128;
  EXPECT_GT(ratio(config::Gpu::Gb200, "gb200", 4), 1);
}

TEST(Price, TheTimesOfAStepAddUp) {
  for (const config::Config& config : {qwen(), merged(qwen()), deep()}) {
    const Price price = price_run(config, gpu("h100"));
    const double rest = price.compute.total() + price.exposed.communication() + price.exposed.host +
                        price.bubble * price.step_ms;
    // In a merged order, compute lost to communication counts as exposed.
    EXPECT_NEAR(rest / price.step_ms, 1, 0.02);
    EXPECT_NEAR(price.mfu, price.tflops_per_gpu / 989, 1e-9);
  }
}

TEST(Price, ARunInFp32HasItsOwnPeakAndMovesTwiceTheBytes) {
  config::Config wide = qwen();
  wide.model.bf16 = false;
  wide.model.params_dtype = base::DType::F32;
  const Hardware h100 = gpu("h100");
  const Price fp32 = price_run(wide, h100), bf16 = price_run(qwen(), h100);
  EXPECT_GT(fp32.compute.products, 8 * bf16.compute.products);
  EXPECT_NEAR(fp32.mfu, fp32.tflops_per_gpu / 67, 1e-9);
  EXPECT_GT(fp32.memory.activations, 1.8 * bf16.memory.activations);
  // Tokens travel in the run's dtype.
  EXPECT_GT(fp32.exposed.ep, 1.8 * bf16.exposed.ep);
}

TEST(Price, CopiesToTheHostTakeOfTheComputeBesideThem) {
  config::Config offloading = qwen();
  offloading.model.fine_grained_activation_offloading = true;
  offloading.model.offload_modules = {config::OffloadModule::CoreAttn,
                                      config::OffloadModule::AttnProj};
  offloading.hardware.gpu = config::Gpu::H100;
  for (const bool is_merged : {false, true}) {
    const config::Config run = is_merged ? merged(qwen()) : qwen();
    config::Config other = is_merged ? merged(offloading) : offloading;
    const double plain = price_step(run, gpu("h100")).step_ms;
    const Price price = price_step(other, gpu("h100"));
    // Measured on an H200: 0.8 and 1.3 %.
    EXPECT_GT(price.step_ms, 1.002 * plain);
    EXPECT_LT(price.step_ms, 1.04 * plain);
    EXPECT_GT(price.exposed.copy, 0.002 * plain);
  }
}

TEST(Price, MergingPaysWhereTokensCrossMachinesAndLosesWhereTheHostIsTheWall) {
  const Hardware h100 = gpu("h100");
  EXPECT_LT(price_step(merged(qwen()), h100).step_ms, 0.9 * price_step(qwen(), h100).step_ms);
  config::Config near = qwen();
  near.model.expert_model_parallel_size = 4;
  near.model.tensor_model_parallel_size = 2;
  near.model.sequence_parallel = true;
  near.train.global_batch_size = 64;
  EXPECT_GT(price_step(merged(near), h100).step_ms, 1.02 * price_step(near, h100).step_ms);
  EXPECT_EQ(price_step(near, h100).wall, Wall::Host);
  // A single micro-batch has no partner.
  near.train.global_batch_size = 8;
  EXPECT_EQ(price_step(merged(near), h100).step_ms, price_step(near, h100).step_ms);
}

TEST(Price, GraphsTakeLaunchesOffTheHost) {
  config::Config graphs = qwen();
  graphs.model.cuda_graph_impl = config::CudaGraphImpl::TransformerEngine;
  graphs.model.cuda_graph_modules = {config::CudaGraphScope::MoeRouter};
  const Price eager = price_step(qwen(), gpu("h100")), some = price_step(graphs, gpu("h100"));
  graphs.model.cuda_graph_impl = config::CudaGraphImpl::FullIteration;
  graphs.model.cuda_graph_modules.clear();
  const Price all = price_step(graphs, gpu("h100"));
  EXPECT_GT(eager.exposed.host, some.exposed.host);
  EXPECT_NEAR(all.exposed.host, 0, 1e-6 * all.step_ms);
}

TEST(Price, AVirtualPipelineHasASmallerBubble) {
  config::Config plain = deep();
  plain.model.virtual_pipeline_model_parallel_size.reset();
  plain.model.pipeline_model_parallel_layout = "Ettt|(tttt|)*14ttL";
  EXPECT_GT(price_step(plain, gpu("h100")).bubble, 1.8 * price_step(deep(), gpu("h100")).bubble);
}

// Also confirmed by simulating every node: ranks wait for each other's turns.
TEST(Price, AMergedPipelineNeedsChunks) {
  config::Config one = merged(qwen());
  one.model.pipeline_model_parallel_size = 2;
  one.model.virtual_pipeline_model_parallel_size = 1;
  one.runtime.world_size = 32;
  config::Config two = one;
  two.model.virtual_pipeline_model_parallel_size = 2;
  const Price price = price_step(one, gpu("h100"));
  EXPECT_EQ(price.wall, Wall::Bubble);
  EXPECT_GT(price.step_ms, 1.6 * price_step(two, gpu("h100")).step_ms);
  EXPECT_NEAR(sieve_step(one, gpu("h100")).step_ms / price.step_ms, 1, 0.1);
}

TEST(Price, FullRecomputationCostsAForward) {
  config::Config again = qwen();
  again.model.recompute_granularity = config::RecomputeGranularity::Full;
  again.model.recompute_method = config::RecomputeMethod::Uniform;
  const Price plain = price_run(qwen(), gpu("h200")), full = price_run(again, gpu("h200"));
  EXPECT_GT(full.step_ms, 1.25 * plain.step_ms);
  EXPECT_LT(full.step_ms, 1.5 * plain.step_ms);
  EXPECT_LT(full.memory.activations, plain.memory.activations / 3);
}

TEST(Price, FewerBitsAreFasterAndOnlyWhereTheGpuHasThem) {
  config::Config narrow = qwen();
  narrow.model.fp8 = config::Fp8Format::E4m3;
  narrow.model.fp8_recipe = config::Fp8Recipe::Mxfp8;
  const Hardware gb200 = gpu("gb200");
  EXPECT_LT(price_step(narrow, gb200).compute.products, price_step(qwen(), gb200).compute.products);
  EXPECT_EQ(gpu("h100").peak(DType::MXFP8), 0);
}

TEST(Price, TheBusiestRankSetsThePace) {
  const Price even = price_run(qwen(), gpu("h100"));
  const Price uneven = price_run(qwen(), gpu("h100"), {.imbalance = 1.5});
  EXPECT_NEAR(uneven.exposed.ep / even.exposed.ep, 1.5, 0.1);
  EXPECT_GT(uneven.compute.products, even.compute.products);
  EXPECT_GT(uneven.memory.activations, even.memory.activations);
}

TEST(Price, AFullyShardedRunKeepsAShareOfItsWeights) {
  config::Config sharded = qwen();
  sharded.ddp.use_megatron_fsdp = true;
  sharded.ddp.data_parallel_sharding_strategy = config::ShardingStrategy::OptimGradsParams;
  sharded.model.expert_model_parallel_size = 1;
  config::Config whole = sharded;
  whole.ddp.use_megatron_fsdp = false;
  const Hardware h100 = gpu("h100");
  EXPECT_NEAR(price_memory(sharded, h100).weights, price_memory(whole, h100).weights / 16, 64);
  EXPECT_GT(price_step(sharded, h100).exposed.dp, 0);
}

TEST(Price, AMemoryThatDoesNotFitIsTheWall) {
  config::Config large = qwen();
  large.train.micro_batch_size = 32;
  EXPECT_EQ(price_run(large, gpu("h100")).wall, Wall::Memory);
  EXPECT_FALSE(price_run(large, gpu("h100")).memory.fits());
}

TEST(Price, IsTheSameEveryTimeAndQuick) {
  const Hardware h100 = gpu("h100");
  const auto start = std::chrono::steady_clock::now();
  const Price first = price_run(deep(), h100);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  EXPECT_EQ(to_json(first), to_json(price_run(deep(), h100)));
}

// Rows that do not fill a tile cost a whole one.
TEST(Price, AProductOfFewRowsIsNoFasterThanOneOfATile) {
  const Hardware h100 = gpu("h100");
  Kernel kernel{.kind = KernelKind::Product, .m = 8, .n = 1536, .k = 2048, .groups = 4};
  const double few = device_seconds(kernel, h100);
  kernel.m = 128;
  EXPECT_EQ(device_seconds(kernel, h100), few);
  kernel.m = 8192;
  EXPECT_GT(device_seconds(kernel, h100), 10 * few);
}

// One H200, measured: a bf16 GEMM of 8192^3 at 775 TFLOP/s; grouped GEMMs of 128 experts at 600
// (4096 tokens, k 2048) and 482 (k 768).
TEST(Price, ProductsOnAnH200AreMeasuredOnes) {
  const Hardware h200 = gpu("h200");
  const auto tflops = [&](double m, double n, double k, double groups) {
    const Kernel kernel{.kind = KernelKind::Product, .m = m, .n = n, .k = k, .groups = groups};
    return 2 * m * n * k * groups / device_seconds(kernel, h200) * 1e-12;
  };
  EXPECT_NEAR(tflops(8192, 8192, 8192, 1) / 775, 1, 0.12);
  EXPECT_NEAR(tflops(256, 1536, 2048, 128) / 600, 1, 0.2);
  EXPECT_NEAR(tflops(256, 2048, 768, 128) / 482, 1, 0.2);
}

}  // namespace price_test
}  // namespace weft::plan
