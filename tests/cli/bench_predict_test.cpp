// weft bench predict and weft bench tune as a user runs them, on a model that takes no time:
// numbers are present and consistent. Bars carry no information here.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program_support.h"
#include "tests/sanitized.h"
#include "weft/base/json.h"

namespace weft::cli {
namespace bench_predict_test {

using base::Json;

const std::string kSmall =
    " overlap_bench model.num_layers=2 model.hidden_size=32 model.num_attention_heads=2 "
    "model.kv_channels=16 model.seq_length=16 model.moe_ffn_hidden_size=16 "
    "train.global_batch_size=8 runtime.pin_ranks=false ";

bool all_met(const Json& bars) {
  bool met = true;
  for (const Json& bar : bars) met = met && bar.at("met").get<bool>();
  return met;
}

TEST(BenchPredict, HoldsPredictedAgainstMeasured) {
  const Outcome outcome =
      weft("bench predict" + kSmall + "'--only=1 rank,TP2,CP2' --steps=4 --rounds=1 --json");
  EXPECT_LE(outcome.code, 1) << outcome.err;
  const Json json = Json::parse(outcome.out);
  // Under a sanitizer's overhead, GEMMs of this size take no measurable time.
  if (!kSanitized) {
    EXPECT_GT(json.at("calibration").at("rates").at("product_flop"), 0.0);
  }
  ASSERT_EQ(json.at("rows").size(), 3u);
  for (const Json& row : json.at("rows")) {
    const double predicted = row.at("predicted_ms"), measured = row.at("measured_ms");
    EXPECT_GT(predicted, 0) << row;
    EXPECT_NEAR(row.at("error"), predicted / measured - 1, 1e-9);
    double nodes = 0;
    for (const Json& node : row.at("nodes")) nodes += node.at("measured_ms").get<double>();
    EXPECT_GT(nodes, 0) << row;
  }
  ASSERT_EQ(json.at("tops").size(), 1u);
  EXPECT_GE(json.at("tops")[0].at("loss"), 0.0);
  EXPECT_EQ(outcome.code, all_met(json.at("bars")) ? 0 : 1);
}

TEST(BenchPredict, NamesItsRuns) {
  const Outcome outcome = weft("bench predict" + kSmall + "--only=EP3");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("PP2 x EP2, 0.1 GB/s"), std::string::npos) << outcome.err;
  const Outcome set = weft("bench predict --set=all");
  EXPECT_EQ(set.code, 2);
  EXPECT_NE(set.err.find("layouts or models"), std::string::npos) << set.err;
}

TEST(BenchPredict, AListEndsWithItsWord) {
  const Outcome outcome = weft("bench predict --only=EP2,CP2 model.no_such_key=1" + kSmall);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("model.no_such_key"), std::string::npos) << outcome.err;
}

const std::string kFewKnobs =
    "--vary comm_overlap.overlap_moe_expert_parallel_comm=true,false --vary "
    "model.moe_token_dispatcher_type=alltoall,allgather --steps=6 --repeats=1 --rounds=1 --json";

TEST(BenchTune, HoldsTheTunerAgainstTheGrid) {
  const Outcome outcome = weft("bench tune" + kSmall + kFewKnobs);
  EXPECT_LE(outcome.code, 1) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("interrupted"), false);
  EXPECT_EQ(json.at("grid"), 4);
  ASSERT_EQ(json.at("settings").size(), 4u) << json;
  int tuned = 0;
  for (const Json& setting : json.at("settings")) {
    EXPECT_EQ(setting.at("every_ms").size(), 1u) << setting;
    EXPECT_EQ(setting.at("near_ms").size(), 2u) << setting;
    EXPECT_EQ(setting.at("final_ms").size(), 4u) << setting;  // all four are finalists
    EXPECT_GE(setting.at("step_ms"), json.at("best_ms"));
    tuned += setting.at("tuned").get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(tuned, 1);
  EXPECT_NEAR(json.at("loss"),
              json.at("tuned_ms").get<double>() / json.at("best_ms").get<double>() - 1,
              1e-9);
  EXPECT_EQ(outcome.code, all_met(json.at("bars")) ? 0 : 1);
  EXPECT_NE(outcome.err.find("4 settings measured, 1 step each"), std::string::npos) << outcome.err;
}

}  // namespace bench_predict_test
}  // namespace weft::cli
