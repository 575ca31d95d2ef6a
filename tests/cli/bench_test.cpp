// weft bench overlap, step and schedule as a user runs them, on a model that takes no time.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace bench_test {

namespace fs = std::filesystem;
using base::Json;

const std::string kTinyDense =
    " --rounds 1 model.num_layers=2 model.hidden_size=32 model.num_attention_heads=2 "
    "model.kv_channels=16 model.seq_length=16 runtime.pin_ranks=false ";
const std::string kTiny =
    "overlap_bench" + kTinyDense + "model.moe_ffn_hidden_size=16 train.global_batch_size=6";

class BenchOverlap : public ::testing::Test {
 protected:
  BenchOverlap()
      : folder_(fs::path(::testing::TempDir()) / base::text("weft_bench_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~BenchOverlap() override { fs::remove_all(folder_); }

  const fs::path folder_;
};

TEST_F(BenchOverlap, JsonHasTheKeysOfTheContract) {
  const std::string svg = (folder_ / "a.svg").string(), costs = (folder_ / "costs.json").string();
  const Outcome outcome =
      weft("bench overlap " + kTiny + " --json --svg " + svg + " --costs " + costs);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(("\n" + outcome.err).find("\nwarning: figures mean something"), std::string::npos)
      << "it warns as other commands do: " << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["fabrics"].size(), 3u);
  for (const Json& fabric : json["fabrics"]) {
    EXPECT_GT(fabric["compute_only_ms"], 0.0);
    EXPECT_GT(fabric["comm_only_ms"], 0.0);
    EXPECT_GT(fabric["ideal_ms"], 0.0);
    ASSERT_EQ(fabric["runs"].size(), 3u);
    EXPECT_EQ(fabric["runs"][0]["name"], "plain");
    EXPECT_EQ(fabric["runs"][0]["speedup"], 1.0);
    for (const Json& run : fabric["runs"]) {
      for (const char* key : {"step_ms",
                              "hidden_any",
                              "hidden_gemm",
                              "exposed_ms",
                              "predicted_ms",
                              "prediction_error",
                              "peak_activation_bytes"}) {
        EXPECT_TRUE(run[key].is_number()) << key;
      }
    }
  }
  EXPECT_NE(base::read_text(svg).find("</svg>"), std::string::npos);
  // The measured costs simulate the order again.
  const Outcome schedule =
      weft("schedule overlap_bench model.num_layers=2 train.global_batch_size=6 --json --costs " +
           costs);
  EXPECT_EQ(schedule.code, 0) << schedule.err;
}

// Bars of such small runs carry no information; only the exit code must agree with them.
bool has_unmet_bar(const Json& json) {
  for (const Json& fabric : json["fabrics"]) {
    for (const Json& bar : fabric["bars"]) {
      if (!bar["met"].get<bool>()) return true;
    }
  }
  return false;
}

// One rank of a pretended world: its links, ratio, parts and bars. Its compute alone is a
// difference of measured times, which other programs can distort: no value of it is checked.
TEST_F(BenchOverlap, OneRankAloneHasLinksAndBars) {
  for (const char* dispatcher :
       {"model.moe_token_dispatcher_type=alltoall",
        "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=deepep"}) {
    // The next test shows alltoall's, as text.
    if (!soaks() && std::string(dispatcher).ends_with("alltoall")) continue;
    const Outcome outcome =
        weft("bench overlap " + kTiny + " --json runtime.backend=loopback " + dispatcher);
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(outcome.code, has_unmet_bar(json) ? 1 : 0) << outcome.err << outcome.out;
    ASSERT_EQ(json["fabrics"].size(), 4u);
    EXPECT_EQ(json["pretended"], true);
    EXPECT_EQ(json["fabrics"][1]["name"], "host link, as it is");
    EXPECT_EQ(json["fabrics"][1]["links"], "");
    EXPECT_NE(json["fabrics"][3]["links"].get<std::string>().find("emulated"), std::string::npos);
    for (const Json& fabric : json["fabrics"]) {
      EXPECT_TRUE(fabric["ratio"].is_number());
      EXPECT_LT(fabric["layers_compute_only_ms"], fabric["compute_only_ms"]);
      EXPECT_LE(fabric["layers_comm_only_ms"], fabric["comm_only_ms"]);
      EXPECT_FALSE(fabric["bars"].empty());
      for (const Json& run : fabric["runs"]) {
        EXPECT_LT(run["layers_ms"], run["step_ms"]);
        EXPECT_LE(run["partnered_hidden_any"], 1.0);
      }
    }
    EXPECT_GT(json["fabrics"][3]["layers_comm_only_ms"], 0.0);
  }
}

TEST_F(BenchOverlap, OneRankAloneSaysSoAndRefusesStages) {
  const Outcome text = weft("bench overlap " + kTiny + " runtime.backend=loopback");
  EXPECT_EQ(text.code, text.out.find("NOT MET") == std::string::npos ? 0 : 1) << text.err;
  for (const char* part : {"(loopback, one runs)", "of the layers: compute alone", "over plain:"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  }
  const Outcome stages =
      weft("bench overlap " + kTiny +
           " runtime.backend=loopback pp=2 world=4 "
           "model.num_layers=4 model.virtual_pipeline_model_parallel_size=2 gbs=8");
  EXPECT_EQ(stages.code, 2);
  EXPECT_NE(stages.err.find("pipeline_model_parallel_size = 2"), std::string::npos) << stages.err;
}

std::vector<std::string> names_of(const Json& runs) {
  std::vector<std::string> names;
  for (const Json& run : runs) names.push_back(run["name"]);
  return names;
}

// Each kind of communication has its own layout of two ranks, orders and rows.
TEST_F(BenchOverlap, EveryModeHasItsOrders) {
  using Names = std::vector<std::string>;
  struct Case {
    std::string words;
    Names orders;
  };
  for (const auto& [words, orders] :
       {Case{"dp", {"plain", "overlap_grad_reduce", "+ overlap_param_gather"}},
        Case{"pp model.num_layers=4 train.global_batch_size=4", {"plain", "overlap_p2p_comm"}},
        Case{"pp vpp=null train.global_batch_size=4",
             {"plain", "overlap_p2p_comm", "overlap_p2p_comm + zb_h1"}},
        Case{"cp train.global_batch_size=4", {"plain", "cp_comm_overlap"}},
        Case{"tp train.global_batch_size=4", {"plain", "tp_comm_overlap"}}}) {
    // The next case has a pipeline's rows and those of zb_h1.
    if (!soaks() && words.starts_with("pp model")) continue;
    const Outcome outcome = weft("bench overlap --json" + kTinyDense + "--mode " + words);
    const Json json = Json::parse(outcome.out);
    const bool is_judged = json["fabrics"][1]["judged"];
    EXPECT_EQ(outcome.code, has_unmet_bar(json) || !is_judged ? 1 : 0)
        << words << outcome.err << outcome.out;
    EXPECT_EQ(json["mode"], words.substr(0, 2));
    ASSERT_EQ(json["fabrics"].size(), 2u) << words;
    const Json& slow = json["fabrics"][1];
    EXPECT_EQ(names_of(slow["runs"]), orders) << words;
    EXPECT_GT(slow["runs"][0]["exposure"]["communication_ms"], 0.0) << words;
    EXPECT_EQ(json["fabrics"][0]["runs"][0]["added"], 0.0) << words;
    EXPECT_EQ(slow["runs"][0]["steady_added"].is_number(), orders.size() == 2 && words[0] == 'p')
        << words;
    // zb_h1 adds a bar: the filled share of the bubble.
    const bool fills = orders.back().ends_with("zb_h1");
    EXPECT_EQ(json["fabrics"][0]["bars"].size(), orders.size() - 1 + (fills ? 1 : 0)) << words;
    EXPECT_EQ(slow.contains("bubble"), fills) << words;
    if (fills) {
      EXPECT_GT(slow["bubble"]["plain_ms"], slow["bubble"]["zb_h1_ms"]);
    }
  }
}

TEST_F(BenchOverlap, AnOrderFromFilesRunsBesideTheOthers) {
  const std::string folder = (folder_ / "found").string();
  ASSERT_EQ(
      weft("schedule " + kTiny.substr(0, kTiny.find("--rounds")) +
           kTiny.substr(kTiny.find("model.")) + " --gbps 1 --improve --tries 30 --write " + folder)
          .code,
      0);
  const Outcome outcome =
      weft("bench overlap --json --shares 0.5 " + kTiny + " --schedule " + folder);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(names_of(json["fabrics"][1]["runs"]).back(), "as written");
  EXPECT_GT(json["fabrics"][1]["runs"].back()["predicted_ms"], 0.0);
  const Outcome none = weft("bench overlap " + kTiny + " --schedule " + folder_.string());
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("rank0.txt"), std::string::npos) << none.err;
}

TEST_F(BenchOverlap, AModeNeedsRanksOfItsKind) {
  const Outcome alone = weft("bench overlap" + kTinyDense + "--mode pp pp=1 vpp=null");
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("--mode pp"), std::string::npos) << alone.err;
  const Outcome pretended =
      weft("bench overlap" + kTinyDense + "--mode dp runtime.backend=loopback");
  EXPECT_EQ(pretended.code, 2);
  EXPECT_NE(pretended.err.find("loopback"), std::string::npos) << pretended.err;
  const Outcome gathered =
      weft("bench overlap" + kTinyDense + "--mode cp model.cp_comm_type=all_gather");
  EXPECT_EQ(gathered.code, 2);
  EXPECT_NE(gathered.err.find("cp_comm_type = all_gather"), std::string::npos) << gathered.err;
  EXPECT_EQ(weft("bench overlap --mode xp").code, 2);
}

TEST_F(BenchOverlap, RefusesLinksOfItsOwnAndModelsWithoutExperts) {
  const Outcome links = weft("bench overlap " + kTiny + " fabric.seed=4");
  EXPECT_EQ(links.code, 2);
  EXPECT_NE(links.err.find("fabric.seed"), std::string::npos) << links.err;
  const Outcome dense =
      weft("bench overlap " + kTiny + " model.expert_model_parallel_size=1 world=1");
  EXPECT_EQ(dense.code, 2);
  EXPECT_NE(dense.err.find("expert_model_parallel_size"), std::string::npos) << dense.err;
}

// The rules derive a dtype from model.bf16; the bench times the judged config, as weft train does.
TEST_F(BenchOverlap, TimesTheJudgedConfig) {
  const auto peaks = [](const std::string& words) {
    const Outcome outcome = weft("bench overlap " + kTiny + " --json --shares 0.5 " + words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::vector<std::int64_t> bytes;
    const Json json = Json::parse(outcome.out);
    for (const Json& run : json["fabrics"][0]["runs"])
      bytes.push_back(run["peak_activation_bytes"]);
    return bytes;
  };
  const std::vector<std::int64_t> switched = peaks("model.bf16=true");
  const std::vector<std::int64_t> full = peaks("");
  ASSERT_EQ(switched.size(), full.size());
  for (std::size_t i = 0; i < full.size(); ++i) EXPECT_LT(switched[i], full[i]) << i;
}

// `weft memory` counts twice as many bytes of the same model in fp32 as the bench has in bf16.
TEST(BenchStep, ReportsItsShareOfThePeakForTheJudgedConfig) {
  const std::string run =
      "cpu_small model.hidden_size=64 model.vocab_size=256 model.seq_length=16 model.num_layers=2 "
      "train.global_batch_size=2 --json ";
  const Outcome timed = weft("bench step --steps 1 " + run + "model.bf16=true");
  EXPECT_EQ(timed.code, 0) << timed.err;
  const Json json = Json::parse(timed.out);
  for (const char* key : {"tokens_per_second", "flops_per_second", "sgemm_peak", "share_of_peak"}) {
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  }
  EXPECT_GT(json.at("peak_bytes").at("optimizer").get<double>(), 0);
  const Json rank = Json::parse(weft("memory " + run).out)["ranks"][0];
  EXPECT_EQ(2 * json["peak_bytes"]["weights"].get<std::int64_t>(),
            rank["tags"]["weights"].get<std::int64_t>());
}

TEST(BenchSchedule, SaysWhatDecidingCosts) {
  const Outcome outcome = weft("bench schedule --json");
  const Json json = Json::parse(outcome.out);
  const Json& bar = json["bars"][0];
  EXPECT_EQ(outcome.code, bar["met"] ? 0 : 1) << outcome.err;
  for (const char* key : {"issue_us",
                          "wake_us",
                          "large_plan_ms",
                          "large_verify_ms",
                          "large_simulate_ms",
                          "deep_simulate_ms"}) {
    EXPECT_GT(json[key], 0.0) << key;
  }
}

TEST(BenchCheck, JudgesRecipesWithinABar) {
  const Outcome outcome = weft("bench check --each=25 --json");
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(outcome.code, json["met"] ? 0 : 1) << outcome.err;
  EXPECT_GE(json["recipes"], 8);
  for (const char* key : {"mean_ms", "slowest_ms", "large_schedule_ms"}) {
    EXPECT_GT(json[key], 0.0) << key;
  }
}

TEST(BenchPlan, SearchesWithinABar) {
  const Outcome outcome = weft("bench plan tp=1 cp=1 etp=1 mbs=1 pp=16 ep=64 vpp=2 --json");
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(outcome.code, json["bars"][0]["met"] ? 0 : 1) << outcome.err;
  EXPECT_EQ(json["bars"][0]["at_most"], 16.0);
  EXPECT_EQ(json["ranked"], 1);
  for (const char* key : {"shapes", "priced", "simulated", "cpu_seconds"}) {
    EXPECT_GT(json[key], 0.0) << key;
  }
}

// On a model that takes no time the bars carry no information: they are judged, and numbers are
// present.
TEST(BenchCheckpoint, MeasuresInAFolderOfItsOwnThatGoes) {
  const fs::path folder = fs::path(::testing::TempDir()) / base::text("weft_disk_{}", ::getpid());
  fs::create_directories(folder);
  const Outcome outcome = weft(
      "bench checkpoint tiny world=1 model.expert_model_parallel_size=1 dataset.kind=mock "
      "--rounds=1 --steps=8 --json checkpoint.save=" +
      folder.string());
  EXPECT_LE(outcome.code, 1) << outcome.err;
  const Json json = Json::parse(outcome.out);
  for (const char* what : {"copy", "write", "read"}) {
    EXPECT_GT(json.at(what).at("gb_per_second"), 0) << what;
    EXPECT_GT(json.at(what).at("plain_gb_per_second"), 0) << what;
  }
  EXPECT_GT(json.at("bytes"), 1000000);
  EXPECT_GT(json.at("save_ms"), 0);
  EXPECT_EQ(json.at("bars").size(), 4u);
  bool met = true;
  for (const Json& bar : json.at("bars")) met = met && bar.at("met").get<bool>();
  EXPECT_EQ(outcome.code, met ? 0 : 1);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

TEST(BenchOffload, HoldsTheUpdateAgainstLinkAndMemory) {
  const Outcome outcome = weft(
      "bench offload tiny world=1 model.expert_model_parallel_size=1 dataset.kind=mock "
      "runtime.optimizer_offload_bucket_size=100000 --steps=2 --json");
  EXPECT_LE(outcome.code, 1) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_GT(json.at("parameters"), 1000000);
  EXPECT_GT(json.at("buckets"), 10);
  for (const char* what : {"gb_per_second",
                           "host_memory_gb_per_second",
                           "download_gb_per_second",
                           "upload_gb_per_second"}) {
    EXPECT_GT(json.at(what), 0) << what;
  }
  EXPECT_LT(json.at("update_ms"), json.at("step_ms"));
  const double least =
      std::max(json.at("least_memory_ms").get<double>(), json.at("least_link_ms").get<double>());
  EXPECT_NEAR(json.at("share"), least / json.at("update_ms").get<double>(), 1e-6);
  EXPECT_EQ(outcome.code, json.at("bars")[0].at("met").get<bool>() ? 0 : 1);
}

TEST(BenchOffload, TimesOneRank) {
  const Outcome outcome = weft("bench offload tiny world=2 ep=2 dataset.kind=mock");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("bench offload times one rank"), std::string::npos) << outcome.err;
}

}  // namespace bench_test
}  // namespace weft::cli
