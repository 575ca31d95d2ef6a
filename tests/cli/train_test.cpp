// weft train, verify and bench as a user runs them, on threads and MPI.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/cli/program_support.h"
#include "tests/sanitized.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/comm/launch.h"

namespace weft::cli {
namespace train_test {

namespace fs = std::filesystem;
using base::Json;

const std::string kSource = WEFT_SOURCE_DIR;
const std::string kGolden = kSource + "/tests/golden/";

class Train : public ::testing::Test {
 protected:
  Train() : folder_(fs::path(::testing::TempDir()) / base::text("weft_train_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Train() override { fs::remove_all(folder_); }

  // Short run of the demo recipe on the sources of this test.
  std::string arguments(const std::string& run) const {
    return base::text(
        "train tiny dataset.path={}/recipes/corpus.txt train.train_iters=3 train.eval_interval=2 "
        "scheduler.lr_warmup_iters=1 model.num_layers=2 model.seq_length=32 logger.log_interval=1 "
        "runtime.run_dir={} --overwrite",
        kSource,
        (folder_ / run).string());
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> records;
    for (const std::string& line :
         base::split(base::read_text(folder_ / run / "metrics.jsonl"), '\n')) {
      if (!line.empty()) records.push_back(Json::parse(line));
    }
    return records;
  }

  std::vector<double> losses(const std::string& run) const {
    std::vector<double> values;
    for (const Json& record : metrics(run)) values.push_back(record.at("lm_loss").get<double>());
    return values;
  }

  fs::path folder_;
};

Outcome under_mpi(int ranks, const std::string& arguments) {
  const fs::path out = fs::path(::testing::TempDir()) / base::text("weft_mpi_{}", ::getpid());
  const std::string command = base::text("'{}/tools/mpirun.sh' -n {} '{}' {} > '{}' 2> '{}.err'",
                                         kSource,
                                         ranks,
                                         WEFT_BINARY,
                                         arguments,
                                         out.string(),
                                         out.string());
  const int status = std::system(command.c_str());
  Outcome outcome{.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                  .out = base::read_text(out),
                  .err = base::read_text(out.string() + ".err")};
  fs::remove(out);
  fs::remove(out.string() + ".err");
  return outcome;
}

#define NEEDS_MPI()                                                       \
  if (!comm::has_mpi()) GTEST_SKIP() << "skipped: this build has no MPI"; \
  if (kSanitized) GTEST_SKIP() << "skipped: Open MPI does not run under the sanitizers"

TEST_F(Train, LeavesConfigMetricsAndTrace) {
  const Outcome outcome = weft(arguments("a") + " runtime.trace=true --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json.at("steps"), 3);
  EXPECT_GT(json.at("tokens_per_second").get<double>(), 0);
  EXPECT_EQ(json.at("run_dir"), (folder_ / "a").string());
  const Json& memory = json.at("memory");
  const auto peak = memory.at("peak_bytes").get<std::int64_t>();
  EXPECT_GT(memory.at("peak_bytes_by_tag").at("weights").get<std::int64_t>(), 0);
  EXPECT_GT(peak, memory.at("peak_bytes_by_tag").at("weights").get<std::int64_t>());
  EXPECT_GE(memory.at("reserved_bytes").get<std::int64_t>(), peak);
  const std::vector<Json> records = metrics("a");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records.back().at("lm_loss"), json.at("final_loss"));
  EXPECT_TRUE(records[1].contains("eval_loss"));
  const Json trace = Json::parse(base::read_text(folder_ / "a" / "trace.json"));
  const std::string text = trace.dump();
  EXPECT_NE(text.find("1F0.dispatch"), std::string::npos);
  EXPECT_NE(text.find("[PP00-DP01-EP01] rank 1"), std::string::npos);
  const Json exposure = Json::parse(base::read_text(folder_ / "a" / "exposure.json"));
  const Json& total = exposure.at("total");
  EXPECT_EQ(total, json.at("exposure"));
  EXPECT_EQ(exposure.at("ranks").size(), 2u);
  EXPECT_EQ(exposure.at("step_ms").size(), 2u) << "the traced steps";
  const double communication = total.at("communication_ms");
  EXPECT_GT(communication, 0);
  EXPECT_NEAR(
      total.at("hidden_any").get<double>() * communication + total.at("exposed_ms").get<double>(),
      communication,
      1e-6 * communication);
  EXPECT_GT(exposure.at("kinds").at("ep").at("communication_ms").get<double>(), 0);
  // The resolved config runs again, with equal bits.
  const Outcome again = weft(base::text("train {} runtime.run_dir={} --json",
                                        (folder_ / "a" / "config.yaml").string(),
                                        (folder_ / "b").string()));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(losses("a"), losses("b"));
}

TEST_F(Train, TheLogLineIsMegatrons) {
  const Outcome outcome = weft(arguments("a"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(
                "] iteration        3/       3 | consumed samples:           24 | elapsed time per "
                "iteration (ms): "),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find(" | loss scale: 1.0 | grad norm: "), std::string::npos);
  // Two ranks on one core are warned.
  if (base::usable_cores().size() >= 2) {
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(Train, WithJsonTheLogGoesToStandardError) {
  const Outcome outcome = weft(arguments("a") + " --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(outcome.out).at("steps"), 3);
  EXPECT_NE(outcome.err.find("] iteration        3/       3 |"), std::string::npos) << outcome.err;
}

// One rank, whose imaginary peers hold and send equal data.
TEST_F(Train, APretendedWorldTrainsWithEveryDispatcherAndSaysWhatItIs) {
  for (const char* dispatcher :
       {"model.moe_token_dispatcher_type=alltoall",
        "model.moe_token_dispatcher_type=allgather",
        "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=deepep",
        "model.moe_token_dispatcher_type=flex model.moe_flex_dispatcher_backend=hybridep "
        "runtime.ranks_per_node=2",
        "model.moe_expert_capacity_factor=1 model.moe_pad_expert_input_to_capacity=true"}) {
    for (const char* backend : {"--fake-init-process-group", "runtime.backend=loopback"}) {
      const Outcome outcome = weft(
          base::text("{} {} world=8 ep=4 gbs=16 {} --json", arguments("a"), backend, dispatcher));
      ASSERT_EQ(outcome.code, 0) << backend << " " << dispatcher << outcome.err;
      const Json json = Json::parse(outcome.out);
      EXPECT_EQ(json.at("pretended"), true);
      EXPECT_EQ(json.at("steps"), 3);
      EXPECT_NE(outcome.err.find("8 ranks (pretended, one runs)"), std::string::npos)
          << outcome.err;
      EXPECT_NE(outcome.err.find("| pretended world |"), std::string::npos) << outcome.err;
      for (const Json& line : metrics("a")) EXPECT_EQ(line.at("pretended"), true);
    }
  }
  const Outcome text = weft(arguments("a") + " --fake-init-process-group");
  EXPECT_NE(text.out.find("tokens/s, of a pretended world"), std::string::npos) << text.out;
}

TEST_F(Train, APretendedWorldSavesAndVerifiesNothing) {
  for (const char* backend : {"fake", "loopback"}) {
    const std::string key = base::text(" runtime.backend={}", backend);
    const Outcome said = weft(arguments("a") + key);
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.err.find("a pretended world (runtime.backend=" + std::string(backend)),
              std::string::npos)
        << said.err;
    const Outcome saves =
        weft(arguments("b") + key + " checkpoint.save_hf=" + (folder_ / "hf").string());
    EXPECT_EQ(saves.code, 2);
    EXPECT_NE(saves.err.find("whose weights are not those of a run"), std::string::npos)
        << saves.err;
    EXPECT_FALSE(fs::exists(folder_ / "hf"));
    const Outcome verifies = weft("verify " + kGolden + "qwen3_moe_tiny" + key);
    EXPECT_EQ(verifies.code, 2);
    EXPECT_NE(verifies.err.find("computes nothing to verify"), std::string::npos) << verifies.err;
  }
}

TEST_F(Train, CtrlCStopsAtAStepsEnd) {
  const fs::path run = folder_ / "a";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command =
        base::text("exec '{}' {} train.train_iters=100000 --json > '{}' 2> '{}'",
                   WEFT_BINARY,
                   arguments("a"),
                   (folder_ / "out").string(),
                   (folder_ / "err").string());
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 2400 &&
                  (!fs::exists(run / "metrics.jsonl") || fs::file_size(run / "metrics.jsonl") == 0);
       ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ::kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130) << base::read_text(folder_ / "err");
  const Json json = Json::parse(base::read_text(folder_ / "out"));
  EXPECT_TRUE(json.at("interrupted").get<bool>());
  EXPECT_EQ(metrics("a").size(), json.at("steps").get<std::size_t>());
}

TEST_F(Train, MpiGivesTheSameBitsAsThreads) {
  NEEDS_MPI();
  const std::string save = " checkpoint.save_hf=" + (folder_ / "hf_").string();
  const std::string model =
      " model.moe_router_pre_softmax=true model.moe_router_norm_topk_prob=true";
  const Outcome threads = weft(arguments("threads") + model + save + "threads");
  ASSERT_EQ(threads.code, 0) << threads.err;
  const Outcome mpi =
      under_mpi(2,
                arguments("mpi") + model + save + "mpi runtime.trace=true runtime.trace_steps=1");
  ASSERT_EQ(mpi.code, 0) << mpi.err;
  const Json exposure = Json::parse(base::read_text(folder_ / "mpi" / "exposure.json"));
  ASSERT_EQ(exposure.at("ranks").size(), 2u);
  for (const Json& rank : exposure.at("ranks")) {
    EXPECT_GT(rank.at("total").at("communication_ms").get<double>(), 0);
  }
  const Json trace = Json::parse(base::read_text(folder_ / "mpi" / "trace.json"));
  std::set<int> ranks;
  for (const Json& event : trace.at("traceEvents")) {
    ranks.insert(event.at("pid").get<int>());
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1})) << "processes of one machine share a time line";
  EXPECT_FALSE(fs::exists(folder_ / "mpi" / "trace.rank1.json"));
  EXPECT_EQ(losses("threads"), losses("mpi"));
  EXPECT_EQ(base::read_text(folder_ / "hf_threads" / "model.safetensors"),
            base::read_text(folder_ / "hf_mpi" / "model.safetensors"));
}

// Trains equal words in `ranks` threads and in as many processes.
class TrainBothWays : public Train {
 protected:
  void expect_same_bits(int ranks, const std::string& words) {
    const std::string save = " checkpoint.save_hf=" + (folder_ / "hf_").string();
    const std::string model =
        " model.moe_router_pre_softmax=true model.moe_router_norm_topk_prob=true " + words;
    const Outcome threads = weft(arguments("threads") + model + save + "threads");
    ASSERT_EQ(threads.code, 0) << threads.err;
    const Outcome mpi = under_mpi(ranks, arguments("mpi") + model + save + "mpi");
    ASSERT_EQ(mpi.code, 0) << mpi.err;
    EXPECT_EQ(losses("threads"), losses("mpi"));
    EXPECT_EQ(metrics("threads").back().at("grad_norm"), metrics("mpi").back().at("grad_norm"));
    EXPECT_EQ(base::read_text(folder_ / "hf_threads" / "model.safetensors"),
              base::read_text(folder_ / "hf_mpi" / "model.safetensors"));
  }
};

TEST_F(TrainBothWays, AnOverlappedPipelineHasTheSameBits) {
  NEEDS_MPI();
  expect_same_bits(4,
                   "model.num_layers=4 world=4 pp=2 vpp=2 ep=2 "
                   "comm_overlap.overlap_moe_expert_parallel_comm=true "
                   "comm_overlap.delay_wgrad_compute=true");
}

TEST_F(TrainBothWays, AllOtherAxesWithZeroBubbleAndADistributedOptimizerHaveTheSameBits) {
  NEEDS_MPI();
  expect_same_bits(8,
                   "model.num_layers=2 world=8 tp=2 cp=2 pp=2 ep=2 model.sequence_parallel=true "
                   "comm_overlap.tp_comm_overlap=true model.cp_comm_type=p2p "
                   "train.global_batch_size=4 train.micro_batch_size=1 "
                   "runtime.pipeline_schedule=zb_h1 ddp.use_distributed_optimizer=true "
                   "optimizer.use_distributed_optimizer=true");
}

TEST_F(Train, OverlapOfOneMicroBatchWarns) {
  const Outcome outcome =
      weft(arguments("a") +
           " comm_overlap.overlap_moe_expert_parallel_comm=true train.micro_batch_size=4");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: W19: a step has one micro-batch"), std::string::npos)
      << outcome.err;
}

// "32.3 MiB"
std::string at_one_time(const std::string& text) {
  const std::string before = "at one time ";
  const std::size_t found = text.find(before);
  if (found == std::string::npos) return text;
  return text.substr(found + before.size(), text.find(',', found) - found - before.size());
}

TEST_F(Train, TakesTheMemoryThatCheckPredicts) {
  const std::string run = arguments("memory") + " world=1 ep=1";
  const Outcome predicted = weft("check " + run.substr(run.find("tiny")) + " --memory");
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_NE(predicted.out.find("predicted by a dry step"), std::string::npos) << predicted.out;
  const Outcome trained = weft(run);
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(at_one_time(predicted.out), at_one_time(trained.out));
}

TEST_F(Train, StartsFromAHuggingFaceFolder) {
  const Outcome outcome =
      weft(base::text("train checkpoint.pretrained_checkpoint={}mixtral_tiny dataset.kind=mock "
                      "train.train_iters=2 scheduler.lr_warmup_iters=0 "
                      "runtime.run_dir={} checkpoint.save_hf={} --json",
                      kGolden,
                      (folder_ / "a").string(),
                      (folder_ / "out").string()));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json config = Json::parse(base::read_text(folder_ / "out" / "config.json"));
  EXPECT_EQ(config.at("hidden_size"), 64);
}

TEST_F(Train, WrongInputIsExplained) {
  const auto fails = [](const std::string& words, int code, const std::string& expected) {
    const Outcome outcome = weft(words);
    EXPECT_EQ(outcome.code, code) << words;
    EXPECT_NE(outcome.err.find(expected), std::string::npos) << words << ": " << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  };
  fails("train nosuchrecipe", 2, "nosuchrecipe");
  fails("train tiny model.hiden_size=3", 2, "model.hidden_size");
  fails("train tiny world=3", 2, "3");
  fails("train tiny train.global_batch_size=7", 2, "train.global_batch_size");
  fails("train tiny dataset.path=/nonexistent/folder", 2, "/nonexistent/folder");
  fails("train tiny model.tensor_model_parallel_size=2 world=2", 2, "tensor");
  fails("verify /nonexistent", 2, "/nonexistent");
  fails("verify " + kGolden + "mixtral_tiny model.num_layers=9", 2, "model.num_layers=9");
  fails("verify " + kGolden + "mixtral_tiny optimizer.lr=1", 2, "optimizer.lr=1");
  fails("train checkpoint.pretrained_checkpoint=" + kGolden + "mixtral_tiny model.num_layers=7",
        2,
        "num_layers=7");
  fails(
      "train tiny checkpoint.save_hf=/proc/x model.moe_router_pre_softmax=true "
      "model.moe_router_norm_topk_prob=true",
      1,
      "/proc/x");
  fails("verify " + kGolden + "mixtral_tiny model.expert_model_parallel_size=3", 2, "3");
}

TEST(VerifyCommand, PassesOnThreadsAndSaysSo) {
  const Outcome outcome =
      weft("verify " + kGolden + "mixtral_tiny world=2 model.expert_model_parallel_size=2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_TRUE(json.at("pass").get<bool>());
  for (const Json& check : json.at("checks")) {
    EXPECT_LE(check.at("error").get<double>(), check.at("tolerance").get<double>());
  }
}

TEST(VerifyCommand, PassesUnderMpi) {
  NEEDS_MPI();
  for (const auto& [ranks, ep] : {std::pair{1, 1}, {2, 2}, {4, 2}, {4, 4}}) {
    const Outcome outcome = under_mpi(
        ranks,
        base::text("verify {}qwen3_moe_tiny model.expert_model_parallel_size={}", kGolden, ep));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(base::text("on {} {} (mpi)", ranks, ranks == 1 ? "rank" : "ranks")),
              std::string::npos)
        << outcome.out;
    EXPECT_EQ(outcome.out.find("PASS"), outcome.out.rfind("PASS")) << "more than one rank reports";
  }
}

constexpr const char* kPipeline =
    "model.pipeline_model_parallel_size=2 model.virtual_pipeline_model_parallel_size=2 "
    "model.expert_model_parallel_size=2 comm_overlap.overlap_moe_expert_parallel_comm=true";

TEST(VerifyCommand, PassesForPipelinesAndNamesThem) {
  const Outcome outcome =
      weft(base::text("verify {}qwen3_moe_deep world=4 {} comm_overlap.overlap_p2p_comm=false "
                      "model.pipeline_model_parallel_layout='Et|ttt||ttttL'",
                      kGolden,
                      kPipeline));
  EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_NE(outcome.out.find("on 4 ranks (threads), pp 2, vpp 2, ep 2, micro-batch 1"),
            std::string::npos)
      << outcome.out;
}

TEST(VerifyCommand, PassesWhereActivationsAreMadeAgainOrLieInHostMemory) {
  for (const std::string words : {"model.recompute_granularity=full model.recompute_method=uniform "
                                  "model.recompute_num_layers=1",
                                  "model.fine_grained_activation_offloading=true "
                                  "model.offload_modules=[core_attn,attn_proj]"}) {
    const Outcome outcome = weft(base::text("verify {}qwen3_moe_tiny {}", kGolden, words));
    EXPECT_EQ(outcome.code, 0) << words << ": " << outcome.err << outcome.out;
  }
}

TEST(VerifyCommand, PassesWithRoomForEveryChoiceAndSaysWhatDroppedOnesChange) {
  const auto verified = [](const std::string& words) {
    return weft(base::text("verify {}qwen3_moe_tiny world=2 ep=2 {}", kGolden, words));
  };
  const Outcome roomy = verified(
      "model.moe_expert_capacity_factor=16 "
      "model.moe_pad_expert_input_to_capacity=true");
  EXPECT_EQ(roomy.code, 0) << roomy.err << roomy.out;
  const Outcome dropping = verified("model.moe_expert_capacity_factor=0.5");
  EXPECT_EQ(dropping.code, 1) << dropping.err << dropping.out;
  EXPECT_NE(dropping.out.find("FAIL: "), std::string::npos) << dropping.out;
}

TEST(VerifyCommand, PassesForPipelinesUnderMpi) {
  NEEDS_MPI();
  for (const auto& [ranks, words] :
       {std::pair{2, "model.pipeline_model_parallel_size=2"},
        {4, kPipeline},
        {4,
         "model.pipeline_model_parallel_size=4 comm_overlap.overlap_p2p_comm=true "
         "comm_overlap.batch_p2p_comm=false"}}) {
    if (!soaks() && std::string(words).find("overlap_p2p_comm=true") == std::string::npos) continue;
    const Outcome outcome =
        under_mpi(ranks, base::text("verify {}qwen3_moe_deep {}", kGolden, words));
    EXPECT_EQ(outcome.code, 0) << words << ": " << outcome.err;
    EXPECT_NE(outcome.out.find("PASS"), std::string::npos) << outcome.out;
  }
}

TEST(VerifyCommand, WithoutAComparisonInBf16ItSaysHowToMakeOne) {
  const fs::path folder = fs::path(::testing::TempDir()) / base::text("weft_bf16_{}", ::getpid());
  fs::copy(kGolden + "mixtral_tiny", folder, fs::copy_options::recursive);
  fs::remove(folder / "bf16.safetensors");
  const Outcome outcome = weft("verify " + folder.string() + " model.bf16=true");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("tools/make_reference.py " + folder.string() + " --bf16"),
            std::string::npos)
      << outcome.err;
  fs::remove_all(folder);
}

TEST(VerifyCommand, AFolderThatIsNoReferenceRunIsToldWhatOneHas) {
  const Outcome outcome = weft("verify " WEFT_SOURCE_DIR "/recipes");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("is no reference run: it has no config.json"), std::string::npos)
      << outcome.err;
}

TEST(VerifyCommand, ATruncatedModelIsAnErrorThatNamesTheFile) {
  const fs::path folder =
      fs::path(::testing::TempDir()) / base::text("weft_truncated_{}", ::getpid());
  fs::copy(kGolden + "mixtral_tiny", folder, fs::copy_options::recursive);
  fs::permissions(folder / "model.safetensors", fs::perms::owner_all);
  fs::resize_file(folder / "model.safetensors", 5000);
  const Outcome outcome = weft("verify " + folder.string());
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("model.safetensors"), std::string::npos) << outcome.err;
  fs::remove_all(folder);
}

TEST_F(Train, AFoldedLayoutHasTheSameLossesUnderMpi) {
  NEEDS_MPI();
  if (!soaks()) GTEST_SKIP() << "skipped: TrainBothWays has all axes; `make soak` runs it";
  const std::string layout =
      " runtime.world_size=8 tp=2 cp=2 pp=2 model.sequence_parallel=true ep=2 "
      "train.global_batch_size=4 train.micro_batch_size=1 comm_overlap.tp_comm_overlap=true "
      "ddp.use_distributed_optimizer=true optimizer.use_distributed_optimizer=true";
  const Outcome threads = weft(arguments("threads") + layout);
  ASSERT_EQ(threads.code, 0) << threads.err;
  const Outcome mpi = under_mpi(8, arguments("mpi") + layout);
  ASSERT_EQ(mpi.code, 0) << mpi.err;
  EXPECT_EQ(losses("mpi"), losses("threads"));
}

TEST(UnderMpi, ADifferentNumberOfRanksThanAskedForIsExplained) {
  NEEDS_MPI();
  const Outcome outcome = under_mpi(2, "verify " + kGolden + "mixtral_tiny world=3");
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("the launcher started 2 ranks"), std::string::npos) << outcome.err;
}

}  // namespace train_test
}  // namespace weft::cli
