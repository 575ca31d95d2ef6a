// weft plan: published runs beside priced ones, and one run's simulation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "tests/cli/program_support.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::cli {
namespace plan_test {

using Json = base::Json;
namespace fs = std::filesystem;

const std::string kGolden = std::string(WEFT_SOURCE_DIR) + "/tests/golden/";
const std::string kPublished = kGolden + "published_throughput.csv";

Json planned(const std::string& words) {
  const Outcome outcome = weft("plan " + words + " --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

// Temporary file of this test.
class Scratch {
 public:
  explicit Scratch(const std::string& name, const std::string& content = "")
      : path_(fs::temp_directory_path() / base::text("weft_plan_{}_{}", getpid(), name)) {
    if (!content.empty()) base::write_whole(path_, content);
  }
  ~Scratch() { fs::remove_all(path_); }
  std::string name() const { return path_.string(); }

 private:
  fs::path path_;
};

TEST(PlanCommand, PublishedRunsAreMetAndWholeModelsAreHeldOut) {
  const Json json = planned("--validate=" + kPublished);
  ASSERT_EQ(json["rows"].size(), 117u);
  std::map<std::string, bool> used;
  for (const Json& row : json["rows"]) {
    const double error = row["predicted"].get<double>() / row["published"].get<double>() - 1;
    EXPECT_NEAR(row["error"].get<double>(), error, 1e-9);
    const auto [place, is_new] = used.emplace(row["model"], row["used_for_fit"]);
    EXPECT_EQ(place->second, row["used_for_fit"].get<bool>()) << "a model is used or held out";
  }
  EXPECT_LE(json["fitted"]["rows"].get<int>() * 2, 117);
  EXPECT_LE(json["held_out"]["median"].get<double>(), 0.12);
  EXPECT_LE(json["held_out"]["p90"].get<double>(), 0.25);
  EXPECT_LE(json["median"].get<double>(), 0.12);
}

// No number was fitted on these rows. Two rows of GPT-OSS that the source calls a known regression
// are not in the file.
TEST(PlanCommand, ModelsThatNoNumberWasFittedOnAreMet) {
  const Json json = planned("--validate=" + kGolden + "published_others.csv");
  ASSERT_EQ(json["rows"].size(), 41u);
  ASSERT_EQ(json["held_out"]["rows"], 41);
  EXPECT_LE(json["median"].get<double>(), 0.12);
  EXPECT_LE(json["p90"].get<double>(), 0.25);
}

TEST(PlanCommand, ATableCountsFlopsInItsOwnWay) {
  const std::string header =
      "model,system,precision,n_gpus,gbs,mbs,seq_len,tp,pp,ep,tokens_per_s_gpu,tflops_per_gpu,"
      "gflop_per_token\n";
  const std::string row = "GPT_OSS_120B,DGX-GB300,BF16,64,1280,4,4096,1,1,64,";
  const Scratch table("counts.csv",
                      header + row + ",600,\n" + row + "19275,524,\n" + row + ",524,27.185\n");
  const Json rows = planned("--validate=" + table.name())["rows"];
  ASSERT_EQ(rows.size(), 3u);
  const double ours = rows[0]["predicted"], theirs = rows[1]["predicted"];
  EXPECT_NEAR(theirs / ours, 27.185 / 32.630, 1e-3) << "by its two rates";
  EXPECT_NEAR(rows[2]["predicted"].get<double>() / ours, 27.185 / 32.630, 1e-3) << "as it says";
}

TEST(PlanCommand, ModelsAreKnownByTheNamesOfTables) {
  std::string table = "model,system,precision,n_gpus,gbs,mbs,seq_len,tp,pp,ep,tflops_per_gpu\n";
  const std::vector<std::string> names{"LLAMA3_8B",
                                       "LLAMA3.1_8B",
                                       "Llama 3.1 70B",
                                       "llama3-70b",
                                       "Meta-Llama-3-8B",
                                       "LLAMA3_405B",
                                       "Llama-3.1-405B",
                                       "GPT OSS 120B",
                                       "gpt-oss-20b",
                                       "Kimi-K2",
                                       "Qwen3-235B-A22B",
                                       "Qwen3_Next_80B_a3b",
                                       "DeepSeek-V3",
                                       "DeepSeekV3 (w/o MTP)"};
  for (const std::string& name : names) table += name + ",GB200,BF16,256,1024,1,4096,1,4,,900\n";
  const Scratch file("names.csv", table);
  const Json json = planned("--validate=" + file.name());
  EXPECT_EQ(json["rows"].size(), names.size()) << json["left_out"];
  const double with = json["rows"][12]["step_ms"], without = json["rows"][13]["step_ms"];
  EXPECT_LT(without, with) << "without the layer that predicts a second token";
}

// Runs measured twice with one key changed. Changes above 2 % have the right sign; for smaller ones
// the prediction is small too.
TEST(PlanCommand, OneKnobChangesAPublishedRunTheRightWay) {
  std::map<std::string, std::map<std::string, Json>> pairs;
  const Json json = planned("--validate=" + kGolden + "published_pairs.csv");
  for (const Json& row : json["rows"]) {
    pairs[row["release"]][row["note"]] = row;
  }
  ASSERT_EQ(pairs.size(), 7u);
  for (const auto& [name, pair] : pairs) {
    const auto change = [&](const char* key) {
      return pair.at("with")[key].get<double>() / pair.at("without")[key].get<double>() - 1;
    };
    const double measured = change("published"), predicted = change("predicted");
    if (std::abs(measured) > 0.02) {
      EXPECT_GT(predicted * measured, 0) << name << ": " << measured << ", " << predicted;
      EXPECT_GT(std::abs(predicted), 0.02) << name;
    } else {
      EXPECT_LT(std::abs(predicted), 0.02) << name;
    }
  }
  ASSERT_EQ(json["pairs"].size(), 7u);
  for (const Json& pair : json["pairs"]) {
    const auto& rows = pairs.at(pair["release"]);
    const double with = rows.at("with")["predicted"], without = rows.at("without")["predicted"];
    EXPECT_NEAR(pair["predicted"].get<double>(), with / without - 1, 1e-9) << pair;
    EXPECT_TRUE(pair["right_sign"].get<bool>()) << pair;
  }
  const Outcome text = weft("plan --validate=" + kGolden + "published_pairs.csv");
  EXPECT_NE(text.out.find("5 of 5 pairs have the right sign; 2 of 2 ties"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("graphs: its source contradicts itself"), std::string::npos) << text.out;
}

// Equal up to another compiler's rounding in the descent.
TEST(PlanCommand, TheFitIsTheOneOfTheFiles) {
  Scratch folder("fit");
  const Json json = planned("--validate=" + kPublished + " --fit --write=" + folder.name());
  EXPECT_GE(json["fit"]["numbers"].size(), 10u);
  const fs::path shipped = fs::path(WEFT_SOURCE_DIR) / "hardware";
  for (const std::string& gpu : plan::known_hardware(shipped)) {
    const plan::Hardware fitted = plan::find_hardware(folder.name(), gpu);
    const plan::Hardware there = plan::find_hardware(shipped, gpu);
    for (const plan::HardwareKey& key : plan::hardware_keys()) {
      EXPECT_NEAR(key.get(fitted), key.get(there), 0.05 * key.get(there))
          << gpu << ", " << key.key << ": write the files again, with the command of docs/plan.md";
    }
  }
}

// A fit on one kind of mixture of experts predicts the other kind, either way.
TEST(PlanCommand, TheModelsOfTheFitCanBeChosen) {
  if (!soaks()) GTEST_SKIP() << "skipped: a second fit, which `make soak` makes";
  const Json json =
      planned("--validate=" + kPublished + " --fit --fit-models=DeepSeekV3,llama3_8b");
  EXPECT_EQ(json["fit"]["rows"], 47);
  EXPECT_LE(json["held_out"]["median"].get<double>(), 0.12);
  EXPECT_LE(json["held_out"]["p90"].get<double>(), 0.25);
}

TEST(PlanCommand, AStrangersTableIsReadOrRefusedCleanly) {
  const std::string header =
      "model,system,precision,n_gpus,gbs,mbs,seq_len,tp,pp,ep,tflops_per_gpu\n";
  const Scratch some("some.csv",
                     header +
                         "GPT_OSS_20B,DGX-GB200,MXFP8,8,64,1,4096,1,1,8,500\n"
                         "Kimi_K2,DGX-GB300,BF16,256,4096,1,4096,1,4,64,900\n"
                         "LLAMA3.1_405B,B200,FP8-CS,128,64,1,8192,4,8,,1500\n"
                         "Qwen3_235B_a22B,H100,FP8,256,2048,1,4096,2,8,32,300\n"
                         "Qwen3_Next_80B_a3b,GB200,MXFP8,64,1024,1,4096,1,2,32,400\n"
                         "Mixtral_8x7B,H100,BF16,64,256,1,4096,1,4,8,400\n"
                         "LLAMA3_8B,H100,MXFP8,8,128,1,8192,1,1,,700\n"
                         "LLAMA3_8B,H100,BF16,8,128,1,8192,1,1,,\n"
                         "LLAMA3_8B,MI300,BF16,8,128,1,8192,1,1,,300\n"
                         "LLAMA3_8B,H100,BF16,0,128,1,8192,1,1,,300\n");
  const Json json = planned("--validate=" + some.name());
  EXPECT_EQ(json["rows"].size(), 6u);
  EXPECT_EQ(json["left_out"].size(), 4u);
  const auto refusal = [](const std::string& content) {
    const Scratch file("bad.csv", content);
    const Outcome outcome = weft("plan --validate=" + file.name());
    EXPECT_EQ(outcome.code, 2) << content;
    return outcome.err;
  };
  EXPECT_NE(refusal("a,b\n1,2\n").find("no column 'model'"), std::string::npos);
  EXPECT_NE(refusal(header + "x,\"y\n").find("a quote opens a cell"), std::string::npos);
  EXPECT_NE(refusal(header + "nobody,H100,BF16,8,8,1,64,1,1,1,3\n").find("known are"),
            std::string::npos);
}

TEST(PlanCommand, SaysWhoseProgramItPricesAndWhyItsClocksDiffer) {
  const auto first_line = [](const Outcome& outcome) {
    return outcome.out.substr(0, outcome.out.find('\n'));
  };
  const Outcome own = weft("plan --simulate olmoe_7b_gpu");
  EXPECT_NE(first_line(own).find("priced as Weft runs it"), std::string::npos) << own.out;
  EXPECT_EQ(own.out.find("\ndifference"), std::string::npos) << own.out;
  // Launches hold up its overlapped turns.
  const Outcome other =
      weft("plan --simulate qwen3_235b_a22b --gpu=h100 gbs=512 model.num_layers=14 vpp=2");
  EXPECT_NE(first_line(other).find("priced as Megatron Bridge runs it"), std::string::npos);
  EXPECT_NE(other.out.find("\ndifference"), std::string::npos) << other.out;
  const Outcome unknown = weft("plan --simulate olmoe_7b_gpu --gpu=b200 --program=weft");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("has no numbers of Weft"), std::string::npos) << unknown.err;
}

TEST(PlanCommand, OneRunIsPricedAndItsTimeLineWritten) {
  const Scratch trace("trace.json");
  const std::string run =
      "--simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 model.num_layers=4 gbs=64 ";
  const Json json = planned(run + "--trace=" + trace.name());
  for (const char* key : {"step_ms", "tokens_per_second_per_gpu", "tflops_per_gpu", "mfu"}) {
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_GT(json["schedule"]["step_ms"].get<double>(), 0);
  EXPECT_NE(base::read_text(trace.name()).find("1F0.dispatch"), std::string::npos);
  EXPECT_LT(planned(run + "--gpu=gb200")["step_ms"].get<double>(), json["step_ms"].get<double>());
}

TEST(PlanCommand, ARunThatDoesNotFitEndsWithOne) {
  const Outcome outcome =
      weft("plan --simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 mbs=16 gbs=256");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("does not fit"), std::string::npos);
  EXPECT_NE(outcome.out.find("wall        memory"), std::string::npos);
  EXPECT_EQ(outcome.out.find("e+0"), std::string::npos) << outcome.out;
}

TEST(PlanCommand, MemoryOfARunThatThisBuildRunsIsWhatItsEngineCounts) {
  const std::string bf16 = "tiny model.bf16=true ";
  for (const std::string& run :
       {std::string("tiny"),
        bf16 + "world=4 pp=2 ep=2 ddp.use_distributed_optimizer=true gbs=32",
        bf16 + "ddp.use_distributed_optimizer=true optimizer.use_precision_aware_optimizer=true "
               "optimizer.exp_avg_dtype=bf16 optimizer.exp_avg_sq_dtype=bf16",
        bf16 + "world=2 ep=2 optimizer.optimizer_cpu_offload=true "
               "optimizer.optimizer_offload_fraction=0.5",
        bf16 + "world=8 tp=2 cp=2 ep=2 etp=2 model.sequence_parallel=true "
               "model.num_query_groups=null model.multi_latent_attention=true "
               "model.q_lora_rank=128 model.kv_lora_rank=64",
        bf16 + "world=2 ep=2 model.recompute_granularity=selective "
               "model.recompute_modules=[moe_act,layernorm]"}) {
    const Json plan = planned("--simulate " + run + " --gpu=h100");
    const Outcome counted = weft("memory " + run + " --json");
    const Json ranks = Json::parse(counted.out)["ranks"];
    const Json& priced = plan["memory_bytes"];
    const Json tags = ranks[priced["pp_rank"].get<std::size_t>()]["tags"];
    for (const char* part : {"weights", "gradients", "optimizer"}) {
      EXPECT_EQ(priced[part].get<double>(), tags[part].get<double>()) << part << " of " << run;
    }
    const Json& engine = plan["engine_memory_bytes"];
    const Json& rank = ranks[engine["pp_rank"].get<std::size_t>()];
    EXPECT_EQ(engine["total"], rank["peak_bytes"]) << run;
    EXPECT_EQ(engine["activations"], rank["tags"]["activations"]) << run;
  }
}

TEST(PlanCommand, ImbalanceIsANumberASkewOrARun) {
  const Scratch folder("run");
  fs::create_directory(folder.name());
  base::write_whole(
      folder.name() + "/metrics.jsonl",
      R"({"iteration_time_ms":9,"expert_loads":[]})"
      "\n"
      R"({"iteration_time_ms":9,"expert_loads":[{"layer":1,"max":2.5,"p95":1.9,"p50":0.9}]})"
      "\n");
  const std::string run =
      "--simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 model.num_layers=4 gbs=64 ";
  const auto step_ms = [&](const std::string& imbalance) {
    return planned(run + "--imbalance=" + imbalance)["step_ms"].get<double>();
  };
  const double even = step_ms("balanced");
  EXPECT_EQ(step_ms("1"), even);
  EXPECT_EQ(step_ms("skew:0"), even);
  for (const std::string& uneven : {std::string("1.5"), std::string("skew:0.4"), folder.name()}) {
    EXPECT_GT(step_ms(uneven), 1.02 * even) << uneven;
  }
  for (const char* wrong : {"0.5", "nan", "skew:", "skew:-1", "1e9", "/nowhere", "balance"}) {
    const Outcome outcome = weft("plan " + run + "--imbalance=" + wrong);
    EXPECT_EQ(outcome.code, 2) << wrong;
    EXPECT_NE(outcome.err.find("give balanced"), std::string::npos) << outcome.err;
  }
  const Scratch empty("empty");
  fs::create_directory(empty.name());
  EXPECT_NE(weft("plan " + run + "--imbalance=" + empty.name()).err.find("no metrics.jsonl"),
            std::string::npos);
}

TEST(PlanCommand, ImbalanceOfAnotherModelIsSaid) {
  const Scratch folder("other");
  fs::create_directory(folder.name());
  base::write_whole(
      folder.name() + "/metrics.jsonl",
      R"({"iteration_time_ms":9,"expert_loads":[{"layer":1,"max":2.5,"p95":1.9,"p50":0.9}]})"
      "\n"
      R"({"iteration_time_ms":9,"expert_loads":[{"layer":1,"max":2.5,"p95":1.9,"p50":0.9}]})"
      "\n");
  base::write_whole(folder.name() + "/config.yaml",
                    "model:\n  num_layers: 2\n  num_moe_experts: 4\n");
  const Outcome outcome = weft(
      "plan --simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 model.num_layers=4 gbs=64 "
      "--imbalance=" +
      folder.name());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("that run has 2 layers of 4 experts"), std::string::npos)
      << outcome.err;
}

// The run decides the order: both are priced, and the chosen one is named.
TEST(PlanCommand, AutoIsTheFastestOfTheOrders) {
  const std::string run =
      "--simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 model.num_layers=4 gbs=128 "
      "comm_overlap.overlap_moe_expert_parallel_comm=auto ";
  const Json json = planned(run);
  ASSERT_EQ(json["orders"].size(), 3u) << json;
  double fastest = 1e300;
  std::string taken;
  for (const Json& order : json["orders"]) {
    fastest = std::min(fastest, order["step_ms"].get<double>());
    if (order["taken"].get<bool>()) taken = order["name"];
  }
  EXPECT_DOUBLE_EQ(json["step_ms"].get<double>(), fastest);
  const Outcome text = weft("plan " + run);
  EXPECT_NE(text.out.find(taken + " of auto is taken"), std::string::npos) << text.out;
}

// Report of a simulated step's trace: it agrees with the price, and advises no feature that the
// step has.
TEST(PlanCommand, AReportOfItsTraceSaysTheSame) {
  const Scratch trace("step.json");
  const Json plan = planned(
      "--simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 model.num_layers=4 gbs=64 "
      "comm_overlap.overlap_moe_expert_parallel_comm=true --trace=" +
      trace.name());
  const Outcome outcome = weft("report --json " + trace.name());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report["kind"], "simulated trace of Weft");
  EXPECT_EQ(report["wall"], plan["wall"]) << report["walls"];
  EXPECT_GT(report["walls"]["host_ms"].get<double>(), 0);
  for (const Json& one : report["next"]) {
    const std::string change = one["change"];
    EXPECT_EQ(change.find("overlap_moe_expert_parallel_comm=true"), change.npos) << change;
  }
}

// A pipeline simulates only some micro-batches, but the report covers the whole step. Launches are
// excluded: beside a waiting receive, a trace shows them as a bubble.
TEST(PlanCommand, AReportOfAShortTraceIsOfTheWholeStep) {
  const std::string pipeline =
      "--simulate qwen3_30b_a3b_pretrain_16gpu_h100_bf16 model.num_layers=16 world=64 pp=8 ep=8 "
      "gbs=1024 mbs=1 model.cuda_graph_impl=full_iteration model.cuda_graph_modules=[] ";
  const std::string plain =
      "vpp=null comm_overlap.overlap_moe_expert_parallel_comm=false "
      "comm_overlap.delay_wgrad_compute=false ";
  const std::string merged =
      "vpp=2 comm_overlap.overlap_moe_expert_parallel_comm=true "
      "comm_overlap.delay_wgrad_compute=false ";
  for (const std::string& order : {plain, merged}) {
    if (!soaks() && order == plain) continue;  // has fewer walls
    SCOPED_TRACE(order);
    const Scratch trace("short.json"), page("short.html");
    const Json plan = planned(pipeline + order + "--trace=" + trace.name());
    const Outcome outcome = weft("report --json --html=" + page.name() + " " + trace.name());
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json report = Json::parse(outcome.out);
    const std::int64_t shown = plan["schedule"]["simulated_micro_batches"];
    EXPECT_EQ(plan["schedule"]["micro_batches"], 128);
    EXPECT_LT(shown, 48);
    EXPECT_EQ(report["micro_batches"], (Json{{"shown", shown}, {"of", 128}}));
    const Json& walls = report["walls"];
    const double step = walls["step_ms"];
    // The schedule itself, in nanoseconds.
    EXPECT_NEAR(step, plan["schedule"]["step_ms"].get<double>(), 1e-6 * step);
    EXPECT_EQ(report["wall"], plan["wall"]) << walls;
    // A clock of turns and a clock of nodes differ by some percent, as their steps do.
    const auto share = [&](const char* wall) { return walls[wall].get<double>() / step; };
    double exposed = 0, compute = 0;
    for (const auto& [kind, ms] : plan["exposed"].items()) {
      if (kind != "host") exposed += ms.get<double>() / plan["step_ms"].get<double>();
    }
    for (const Json& ms : plan["compute"]) {
      compute += ms.get<double>() / plan["step_ms"].get<double>();
    }
    EXPECT_NEAR(step / plan["step_ms"].get<double>(), 1, 0.03);
    EXPECT_NEAR(share("bubble_ms"), plan["bubble"].get<double>(), 0.015);
    EXPECT_NEAR(share("communication_ms"), exposed, 0.03);
    EXPECT_NEAR(share("compute_ms"), compute, 0.04);
    const std::string said = base::text("the timeline shows {} of 128 micro-batches", shown);
    EXPECT_NE(weft("report " + trace.name()).out.find(said), std::string::npos) << said;
  }
}

TEST(PlanCommand, AnUnknownGpuListsTheKnownOnes) {
  const Outcome outcome = weft("plan --simulate tiny --gpu=h1000");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("b200, b300, gb200, gb300, h100, h200"), std::string::npos)
      << outcome.err;
  EXPECT_NE(weft("plan --simulate tiny").err.find("--gpu=NAME"), std::string::npos);
}

}  // namespace plan_test
}  // namespace weft::cli
