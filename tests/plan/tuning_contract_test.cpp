#include "weft/plan/tuning/tuning_contract.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/config/field.h"
#include "weft/plan/tuning/tuning_moves.h"

namespace weft::plan {
namespace tuning_contract_test {

TEST(TuningContract, WhatMayBeVariedAreKeys) {
  for (const std::string_view key : tunable_keys()) {
    EXPECT_NE(config::find_field(key), nullptr) << key;
  }
}

TEST(TuningContract, TheTunersOwnMovesKeepIt) {
  config::Config config;
  config.model.num_moe_experts = 4;
  config.model.moe_shared_expert_intermediate_size = 32;
  config.model.expert_model_parallel_size = 2;
  config.model.tensor_model_parallel_size = 2;
  config.model.pipeline_model_parallel_size = 2;
  config.model.context_parallel_size = 2;
  config.ddp.use_distributed_optimizer = true;
  config.runtime.world_size = 16;
  for (const TuningMove& move : tuning_moves(config)) {
    if (move.kind == MoveKind::Order) {
      for (const auto& [key, value] : move.sets) {
        EXPECT_EQ(kind_of_change(key), MoveKind::Order) << key;
      }
    }
    for (const auto& [key, value] : move.sets) EXPECT_NO_THROW(require_tunable_key(key)) << key;
  }
}

TEST(TuningContract, ModelDataBatchNumericsLayoutAndMachineStay) {
  for (const char* key : {"model.num_layers",
                          "model.moe_router_topk",
                          "model.seq_length",
                          "model.moe_expert_capacity_factor",
                          "model.moe_router_force_load_balancing",
                          "model.bf16",
                          "model.fp8",
                          "model.tensor_model_parallel_size",
                          "model.expert_model_parallel_size",
                          "model.virtual_pipeline_model_parallel_size",
                          "train.global_batch_size",
                          "optimizer.lr",
                          "dataset.path",
                          "rng.seed",
                          "runtime.world_size",
                          "runtime.device",
                          "fabric.intra_node_gb_per_second",
                          "ddp.grad_reduce_in_fp32"}) {
    try {
      require_tunable_key(key);
      ADD_FAILURE() << key << " may be varied";
    } catch (const base::ConfigError& error) {
      const std::string words = error.what();
      EXPECT_NE(words.find(key), words.npos) << words;
      EXPECT_NE(words.find("cannot be compared"), words.npos) << words;
      EXPECT_NE(words.find("train.micro_batch_size"), words.npos) << words;
    }
  }
}

}  // namespace tuning_contract_test
}  // namespace weft::plan
