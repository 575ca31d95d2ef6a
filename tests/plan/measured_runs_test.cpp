// Evidence from published runs for a price: errors of the nearest runs, and modes that none has.
#include "weft/plan/published/measured_runs.h"

#include <gtest/gtest.h>

#include "weft/plan/published/validation.h"
#include "weft/plan/search/layout_choice.h"

namespace weft::plan {
namespace measured_runs_test {

config::Config model_named(const std::string& name) {
  config::Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 4;
  model.hidden_size = 1024;
  model.num_attention_heads = 8;
  model.num_query_groups = 8;
  model.vocab_size = 32000;
  model.ffn_hidden_size = 4096;
  if (name != "dense") {
    model.num_moe_experts = 16;
    model.moe_ffn_hidden_size = 2048;
    model.moe_router_topk = 2;
  }
  return config;
}

// Sixteen runs: two were fitted on (by their model), and one contradicts itself.
MeasuredRuns some_runs() {
  const std::string head =
      "model,system,precision,n_gpus,gbs,mbs,seq_len,ep,dispatcher_backend,a2a_overlap,"
      "cuda_graph_impl,cuda_graph_scope,tflops_per_gpu,match,doubt\n";
  std::string rows;
  const auto add = [&](const std::string& model, const std::string& rest, int times) {
    for (int i = 0; i < times; ++i) rows += model + "," + rest + "\n";
  };
  const std::string graphs = "transformer_engine,\"['moe_router', 'attn']\"";
  add("mixed", "DGX-H100,BF16,8,64,1,4096,8,hybridep,True,,,100,exact,", 10);
  add("mixed", "DGX-GB200,BF16,8,64,1,4096,8,hybridep,False," + graphs + ",100,exact,", 2);
  add("mixed", "DGX-H100,BF16,8,64,1,4096,8,,False," + graphs + ",300,exact,contradicts itself", 1);
  add("dense", "DGX-H100,BF16,8,64,1,4096,1,,,,,100,exact,", 1);
  add("qwen3_30b_a3b", "DGX-H100,BF16,8,64,1,4096,8,,False,,,1,exact,", 2);
  HardwareTable hardware;
  for (const char* gpu : {"h100", "gb200"}) {
    hardware[gpu] = find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", gpu);
  }
  return MeasuredRuns({parse_published(head + rows, "some.csv", model_named)}, hardware);
}

config::Config planned(const std::string& model) {
  config::Config config = model_named(model);
  set_number(config, DType::BF16);
  config.runtime.world_size = 8;
  return config;
}

Hardware on(const char* gpu) {
  return find_hardware(std::filesystem::path(WEFT_SOURCE_DIR) / "hardware", gpu);
}

TEST(MeasuredRuns, TheBandIsOfTheNearestThatWereHeldOut) {
  MeasuredRuns runs = some_runs();
  const Trust trust = runs.of(planned("mixed"), on("h100"));
  ASSERT_TRUE(trust.band);
  EXPECT_EQ(trust.band->rows, 10u) << "neither those of GB200 nor those that were fitted on";
  EXPECT_DOUBLE_EQ(trust.band->median, trust.band->p90) << "ten times the same run";
  EXPECT_TRUE(band_text(trust).find(" %, 9 of 10 within ") != std::string::npos)
      << band_text(trust);
  const Trust dense = runs.of(planned("dense"), on("h100"));
  ASSERT_TRUE(dense.band);
  EXPECT_EQ(dense.band->rows, 1u);
}

TEST(MeasuredRuns, NamesModesThatNoRunHas) {
  MeasuredRuns runs = some_runs();
  config::Config config = planned("mixed");
  EXPECT_TRUE(runs.of(config, on("h100")).unmeasured.empty());
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  EXPECT_TRUE(runs.of(config, on("h100")).unmeasured.empty());
  config.optimizer.optimizer_cpu_offload = true;
  config.optimizer.optimizer_offload_fraction = 0.5;
  EXPECT_EQ(runs.of(config, on("h100")).unmeasured,
            (std::vector<std::string>{"optimizer on the host"}));
}

// The row with graphs on H100 contradicts itself; on GB200 they were measured.
TEST(MeasuredRuns, ARowThatContradictsItselfMeasuresNothing) {
  MeasuredRuns runs = some_runs();
  config::Config config = planned("mixed");
  config.model.cuda_graph_impl = config::CudaGraphImpl::TransformerEngine;
  config.model.cuda_graph_modules = {config::CudaGraphScope::Attn};
  EXPECT_EQ(runs.of(config, on("h100")).unmeasured,
            (std::vector<std::string>{"graphs of attention"}));
  EXPECT_TRUE(runs.of(config, on("gb200")).unmeasured.empty());
}

TEST(MeasuredRuns, NamesModesThatWereMeasuredButNotTogether) {
  MeasuredRuns runs = some_runs();
  config::Config config = planned("mixed");
  config.model.cuda_graph_impl = config::CudaGraphImpl::TransformerEngine;
  config.model.cuda_graph_modules = {config::CudaGraphScope::Attn};
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  // GB200 has no run with overlap; with one added, only the combination has none.
  EXPECT_EQ(runs.of(config, on("gb200")).unmeasured, (std::vector<std::string>{"overlap"}));
}

TEST(MeasuredRuns, SaysNothingOfHardwareThatNoRunIsOf) {
  MeasuredRuns runs = some_runs();
  Hardware here = on("h100");
  here.name = "my_cluster";
  const Trust trust = runs.of(planned("mixed"), here);
  EXPECT_FALSE(trust.band);
  EXPECT_TRUE(trust.unmeasured.empty());
}

}  // namespace measured_runs_test
}  // namespace weft::plan
