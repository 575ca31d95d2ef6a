// Start and stop of a run, and the files that it leaves, also with failing disks, readers and
// signals.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cli/program_support.h"
#include "tests/sanitized.h"
#include "tests/soak.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/comm/launch.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::Json;
using base::text;

const std::string kSource = WEFT_SOURCE_DIR;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string contents(const fs::path& file) {
  return fs::exists(file) ? base::read_text(file) : std::string();
}

class Run : public ::testing::Test {
 protected:
  Run() : folder_(fs::path(::testing::TempDir()) / text("weft_run_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Run() override { fs::remove_all(folder_); }

  // Run with steps of milliseconds that Hugging Face can save.
  std::string words(const std::string& more) const {
    return text(
        "train tiny dataset.path={}/recipes/corpus.txt model.num_layers=1 model.seq_length=16 "
        "model.hidden_size=32 model.num_attention_heads=2 model.num_query_groups=2 "
        "model.kv_channels=16 model.moe_ffn_hidden_size=16 model.moe_router_pre_softmax=true "
        "model.moe_router_norm_topk_prob=true logger.log_interval=1 train.eval_interval=0 "
        "runtime.run_dir={} --overwrite {}",
        kSource,
        (folder_ / "run").string(),
        more);
  }

  fs::path metrics() const { return folder_ / "run" / "metrics.jsonl"; }
  fs::path saved() const { return folder_ / "hf"; }
  std::string save() const { return "checkpoint.save_hf=" + saved().string() + " "; }

  std::size_t whole_lines() const {
    std::size_t lines = 0;
    for (const std::string& line : base::split(contents(metrics()), '\n')) {
      if (line.empty()) continue;
      EXPECT_FALSE(Json::parse(line, nullptr, false).is_discarded()) << line;
      ++lines;
    }
    return lines;
  }

  fs::path folder_;
};

// Runs `command` in the background, with output in files of the folder.
class Background {
  static constexpr int kPatience = 4800;  // polls, two minutes: other tests use the cores as well

 public:
  Background(const fs::path& folder, const std::string& command) : folder_(folder) {
    child_ = ::fork();
    if (child_ != 0) return;
    const std::string whole = text("exec {} > '{}' 2> '{}'",
                                   command,
                                   (folder / "out").string(),
                                   (folder / "err").string());
    ::execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
    ::_exit(127);
  }
  ~Background() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  void wait_until(const std::function<bool()>& holds) const {
    for (int i = 0; i < kPatience && !holds(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    EXPECT_TRUE(holds()) << err();
  }
  void signal(int number) const { ::kill(child_, number); }
  // True if the process handles the signal, by the system. Before exec, it still has the handlers
  // of this process.
  bool catches(int number) const {
    std::ifstream status(text("/proc/{}/status", child_));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Name:") && !line.ends_with("\tweft")) return false;
      if (!line.starts_with("SigCgt:")) continue;
      return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
    }
    return false;
  }
  // Exit code; -1: ended by a signal, also by ours if it does not end.
  int wait() {
    int status = 0;
    for (int i = 0; i < kPatience && ::waitpid(child_, &status, WNOHANG) == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
      if (i == kPatience - 1) {
        ADD_FAILURE() << "it does not end; it wrote " << err();
        ::kill(child_, SIGKILL);
        ::waitpid(child_, &status, 0);
      }
    }
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string out() const { return contents(folder_ / "out"); }
  std::string err() const { return contents(folder_ / "err"); }

 private:
  fs::path folder_;
  pid_t child_ = 0;
};

std::string program() { return text("'{}' ", WEFT_BINARY); }

TEST_F(Run, EverySignalToEndSavesTheWeightsAndSaysSo) {
  for (const auto& [number, code] : {std::pair{SIGTERM, 143}, {SIGHUP, 129}, {SIGUSR1, 143}}) {
    fs::remove_all(saved());
    fs::remove_all(folder_ / "run");
    fs::remove_all(folder_ / "saved");
    Background run(folder_,
                   program() + words(save() + "train.train_iters=1000000 checkpoint.save=" +
                                     (folder_ / "saved").string()));
    run.wait_until([&] { return !contents(metrics()).empty(); });
    run.signal(number);
    if (number == SIGHUP) run.signal(number);
    EXPECT_EQ(run.wait(), code) << run.err();
    EXPECT_TRUE(fs::exists(saved() / "model.safetensors"));
    EXPECT_EQ(contents(folder_ / "saved" / "latest_checkpointed_iteration.txt"),
              text("{}\n", whole_lines()));
    const std::string way_out = number == SIGTERM ? "a second SIGTERM" : "SIGINT";
    EXPECT_TRUE(has(run.err(), "\nstopping after this step; " + way_out + " stops at once\n"));
    EXPECT_TRUE(has(run.out(), "stopped after ")) << run.out();
    EXPECT_GT(whole_lines(), 0u);
  }
}

TEST_F(Run, SignalsOfSchedulersEndTheProcessWhereTheyAreNotHandled) {
  Background run(folder_,
                 program() + words("train.train_iters=1000000 train.exit_signal_handler=false"));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), -1) << run.err();
  EXPECT_FALSE(has(run.out(), "stopped after ")) << run.out();
}

TEST_F(Run, OneMoreSignalMayBeNamed) {
  Background run(folder_, program() + words("train.train_iters=1000000 train.exit_signal=SIGUSR2"));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  run.signal(SIGUSR2);
  EXPECT_EQ(run.wait(), 143) << run.err();
  EXPECT_TRUE(has(run.out(), "stopped after ")) << run.out();
}

TEST_F(Run, OneCtrlCAfterAnySignalStopsAtOnce) {
  for (const int number : {SIGHUP, SIGUSR1}) {
    if (!soaks() && number == SIGUSR1) continue;  // is taken as SIGHUP is
    fs::remove_all(folder_ / "run");
    // Steps of about a second, so that the second signal arrives within one.
    Background run(folder_,
                   program() + words("train.train_iters=1000000 train.global_batch_size=2048 "
                                     "train.micro_batch_size=1"));
    run.wait_until([&] { return !contents(metrics()).empty(); });
    run.signal(number);
    run.wait_until([&] { return has(run.err(), "SIGINT stops at once"); });
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(), -1) << run.err();
    EXPECT_FALSE(has(run.out(), "stopped after ")) << run.out();
  }
}

TEST_F(Run, AnIgnoredHangUpStaysIgnored) {
  Background run(folder_, "nohup " + program() + words("train.train_iters=1000000"));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  run.signal(SIGHUP);
  const std::size_t before = whole_lines();
  run.wait_until([&] { return whole_lines() > before + 2; });
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 143);
}

TEST_F(Run, AnEvaluationHearsTheSignal) {
  Background run(folder_,
                 program() + words(save() + "train.train_iters=2 train.eval_interval=1 "
                                            "train.eval_iters=100000000"));
  run.wait_until([&] { return has(run.out(), "iteration        1/       2 |"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has(run.out(), "validation")) << "the step is told of before it evaluates";
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 143) << run.err();
  EXPECT_TRUE(fs::exists(saved() / "config.json"));
}

TEST_F(Run, OneThatWaitsForAnothersFolderIsStoppedAtOnce) {
  const fs::path held = folder_ / "held";
  fs::create_directories(held);
  const base::Descriptor lock = checkpoint::lock_folder(held);
  Background run(folder_, program() + words("checkpoint.save=" + held.string()));
  run.wait_until([&] { return has(run.out(), "this one waits for its end"); });
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
}

TEST_F(Run, AStoppedRunLeavesNoEmptyTrace) {
  Background run(folder_, program() + words("runtime.trace=true train.train_iters=1000000"));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_FALSE(fs::exists(folder_ / "run" / "trace.json"));
  EXPECT_FALSE(fs::exists(folder_ / "run" / "exposure.json"));
  EXPECT_TRUE(has(run.out(), "trace     none: stopped before the traced steps")) << run.out();
}

TEST_F(Run, ABenchSaysThatItStops) {
  const std::string step = "bench step tiny world=1 ep=1 dataset.kind=mock --steps 10000";
  for (const std::string& bench : {step,
                                   std::string("bench schedule"),
                                   std::string("bench check"),
                                   std::string("bench plan")}) {
    Background run(folder_, program() + bench);
    run.wait_until([&] { return run.catches(SIGINT); });
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(), 130) << bench << run.err();
    EXPECT_TRUE(has(run.err(), "stopping after this step")) << bench << run.err();
    EXPECT_TRUE(has(run.err(), "stopped before the end: nothing to report")) << run.err();
    EXPECT_EQ(run.out(), "") << bench;
  }
}

// Stacks of a gigabyte: after a few, no room is left for another.
TEST_F(Run, AThreadThatCannotBeStartedIsNoBugOfWeft) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more address space than this run may have";
  for (const char* threads : {"world=64 ep=1", "world=1 ep=1 runtime.threads_per_rank=64"}) {
    const Outcome outcome =
        shell("sh",
              "ulimit -s 1048576; ulimit -v 16000000; export OPENBLAS_NUM_THREADS=1; "
              "exec " +
                  program() + words(threads) + " train.global_batch_size=128");
    EXPECT_EQ(outcome.code, 1) << threads << outcome.err;
    EXPECT_TRUE(has(outcome.err, "cannot start ")) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "ulimit")) << outcome.err;
    EXPECT_FALSE(has(outcome.err, "a bug in weft")) << outcome.err;
  }
}

TEST_F(Run, ASecondRunInItsFolderIsRefused) {
  Background run(folder_, program() + words("train.train_iters=1000000"));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  const Outcome second = weft(words("train.train_iters=2"));
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(has(second.err, "in use by another run")) << second.err;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130);
  EXPECT_GT(whole_lines(), 0u);
}

TEST_F(Run, MetricsThatCannotBeWrittenDoNotCostTheWeights) {
  fs::create_directories(folder_ / "run");
  fs::create_symlink("/dev/full", metrics());
  const Outcome outcome = weft(words(save() + "train.train_iters=3"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "metrics.jsonl lacks 3 of 3 lines: ")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "No space left")) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "trained 3 steps")) << outcome.out;
  EXPECT_TRUE(fs::exists(saved() / "model.safetensors"));
}

TEST_F(Run, ASaveThatFailsIsNamedAndTheSummaryPrinted) {
  Background run(folder_, program() + words(save() + "train.train_iters=1000000"));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  base::write_whole(saved().string() + ".partial", "in the way");
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 1);
  EXPECT_TRUE(has(run.err(), "error: checkpoint.save_hf: cannot make")) << run.err();
  EXPECT_FALSE(has(run.err(), "broadcast")) << run.err();
  EXPECT_TRUE(has(run.out(), "stopped after ")) << run.out();
  EXPECT_FALSE(has(run.out(), "weights   " + saved().string())) << run.out();
}

TEST_F(Run, RoomForTheWeightsIsAskedForFirst) {
  const Outcome outcome = weft(words(save() + "train.train_iters=1000000"), "ulimit -f 40;");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "ulimit -f")) << outcome.err;
  EXPECT_TRUE(contents(metrics()).empty());
}

TEST_F(Run, ClosedStandardStreamsDoNotGetIntoFiles) {
  const Outcome outcome = shell("sh", program() + words("train.train_iters=3 2>&- >&- <&-"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(whole_lines(), 3u);
}

TEST_F(Run, AReaderThatLeavesDoesNotEndTheRun) {
  const Outcome outcome =
      shell("bash",
            program() + words("train.train_iters=30 2>&1 | head -1; echo ${PIPESTATUS[0]}"));
  EXPECT_TRUE(outcome.out.ends_with("\n0\n")) << outcome.out;
  EXPECT_EQ(whole_lines(), 30u);
  EXPECT_EQ(shell("bash", program() + "config | head -1 > /dev/null; exit ${PIPESTATUS[0]}").code,
            0);
}

TEST_F(Run, TextCutWhileItTrainsIsNoMatter) {
  fs::copy_file(kSource + "/recipes/corpus.txt", folder_ / "own.txt");
  fs::permissions(folder_ / "own.txt", fs::perms::owner_all);
  Background run(folder_,
                 program() + words(text("dataset.path={} train.train_iters=1000000",
                                        (folder_ / "own.txt").string())));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  fs::resize_file(folder_ / "own.txt", 0);
  const std::size_t before = whole_lines();
  run.wait_until([&] { return whole_lines() > before + 20; });
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 143) << run.err();
}

TEST_F(Run, SaysFirstWhatAPersonWantsToKnow) {
  const Outcome outcome = weft(words("train.train_iters=2"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"weft: tiny: 1 layer, 8 experts",
        "fp32\n",
        "\nranks     2 ranks (threads), ep 2",
        "\nbatch     8 sequences of 16 tokens a step (128 tokens), in "
        "micro-batches of 2\n",
        "\nrate      0.002 after 60 steps of warm-up, which the run does not reach: it is "
        "6.66667e-05 at step 2\n",
        "\nweights   random",
        "corpus.txt (text): ",
        " held out; 2 steps read 0.00 epochs\n",
        "\nrun       "}) {
    EXPECT_TRUE(has(outcome.out, part)) << part << " in\n" << outcome.out;
  }
  EXPECT_FALSE(has(outcome.out, "off by default")) << outcome.out;
  EXPECT_FALSE(has(outcome.out + outcome.err, "set: ")) << outcome.out;
  const Outcome more = weft(words("train.train_iters=2 --verbose"));
  EXPECT_TRUE(has(more.out, "off by default")) << more.out;
  EXPECT_TRUE(has(more.out, "set: ")) << more.out;
}

TEST_F(Run, AModelFromAFolderHasTheFoldersName) {
  const Outcome outcome =
      weft(text("train checkpoint.pretrained_checkpoint={}/tests/golden/mixtral_tiny/ "
                "dataset.kind=mock train.train_iters=1 scheduler.lr_warmup_iters=0 "
                "runtime.run_dir={}",
                kSource,
                (folder_ / "run").string()));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "weft: mixtral_tiny: ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "\nweights   from ")) << outcome.out;
}

TEST_F(Run, MoreSamplesAStepThanThereAreIsToldOf) {
  base::write_whole(folder_ / "short.txt", std::string(49, 'x'));
  const Outcome outcome =
      weft(words(text("dataset.path={} train.train_iters=1", (folder_ / "short.txt").string())));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "has 2 samples for training")) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "1 step reads 4.00 epochs")) << outcome.out;
}

TEST_F(Run, RanksThatShareCoresAreToldOf) {
  const Outcome outcome = weft(words("train.train_iters=1"), "taskset -c 0");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "warning: 2 ranks of 1 thread each share 1 core")) << outcome.err;
}

TEST_F(Run, AFolderThatCannotSayTheCapacityIsToldOf) {
  const Outcome outcome =
      weft(words(save() + "model.moe_expert_capacity_factor=1.0 train.train_iters=1"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "cannot say model.moe_expert_capacity_factor = 1:")) << outcome.err;
}

TEST_F(Run, AForeignLauncherIsRefusedUnlessThreadsAreAskedFor) {
  for (const char* variable : {"SLURM_NTASKS=4", "PMI_SIZE=4", "WORLD_SIZE=4"}) {
    const Outcome outcome = weft(words("train.train_iters=1"), variable);
    EXPECT_EQ(outcome.code, 2) << variable;
    EXPECT_TRUE(has(outcome.err, variable)) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "runtime.backend=threads")) << outcome.err;
  }
  EXPECT_EQ(weft("perf tiny --dryrun", "WORLD_SIZE=4").code, 2);
  EXPECT_EQ(weft(words("train.train_iters=1 runtime.backend=threads"), "SLURM_NTASKS=4").code, 0);
  EXPECT_EQ(weft(words("train.train_iters=1"), "SLURM_NTASKS=1").code, 0);
}

TEST_F(Run, TheNameOfAModelOnTheHubIsNoFolder) {
  const Outcome outcome =
      weft("train checkpoint.pretrained_checkpoint=Qwen/Qwen3-30B-A3B train.train_iters=1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(has(outcome.err, "'Qwen/Qwen3-30B-A3B' is no folder")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "downloaded first")) << outcome.err;
}

TEST_F(Run, ABenchKnowsBeforeItRunsThatItCannotWrite) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome =
      weft("bench overlap --rounds 1000 --svg " + (folder_ / "no/x.svg").string());
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "no/x.svg")) << outcome.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(Run, APeerThatIsNotInstalledIsNamed) {
  base::write_whole(folder_ / "torch.py", "raise ImportError('not here')\n");
  const Outcome outcome =
      weft("bench step cpu_small --steps 1 --peer", "PYTHONPATH='" + folder_.string() + "'");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "--peer needs PyTorch")) << outcome.err;
  EXPECT_FALSE(has(outcome.err, "Traceback")) << outcome.err;
}

TEST_F(Run, ThePeerIsRunByThePythonThatPathFinds) {
  const std::filesystem::path python = folder_ / "python3", asked = folder_ / "asked";
  base::write_whole(python, text("#!/bin/sh\necho \"$@\" >> '{}'\nexit 1\n", asked.string()));
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const Outcome outcome =
      weft("bench step cpu_small --steps 1 --peer", text("PATH='{}':\"$PATH\"", folder_.string()));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "the python3 that PATH finds has no module")) << outcome.err;
  EXPECT_TRUE(has(base::read_text(asked), "import torch"));
}

TEST_F(Run, CtrlCUnderMpiLeavesTheWeightsAndTheSummary) {
  if (!comm::has_mpi()) GTEST_SKIP() << "skipped: this build has no MPI";
  if (kSanitized) GTEST_SKIP() << "skipped: Open MPI does not run under the sanitizers";
  // Steps of some seconds, longer than mpirun's patience.
  Background run(folder_,
                 text("'{}/tools/mpirun.sh' -n 2 {} {}",
                      kSource,
                      program(),
                      words(save() + "train.train_iters=1000000 train.global_batch_size=2048 "
                                     "train.micro_batch_size=1")));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_TRUE(fs::exists(saved() / "model.safetensors")) << run.err();
  EXPECT_TRUE(has(run.out(), "stopped after ")) << run.out();
}

TEST_F(Run, ASaveThatFailsUnderMpiIsNamedAndNoRankBlamed) {
  if (!comm::has_mpi()) GTEST_SKIP() << "skipped: this build has no MPI";
  if (kSanitized) GTEST_SKIP() << "skipped: Open MPI does not run under the sanitizers";
  Background run(folder_,
                 text("'{}/tools/mpirun.sh' -n 2 {} {}",
                      kSource,
                      program(),
                      words(save() + "train.train_iters=1000000")));
  run.wait_until([&] { return !contents(metrics()).empty(); });
  base::write_whole(saved().string() + ".partial", "in the way");
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 1) << run.err();
  EXPECT_TRUE(has(run.err(), "error: checkpoint.save_hf: cannot make")) << run.err();
  EXPECT_FALSE(has(run.err(), "broadcast")) << run.err();
}

}  // namespace
}  // namespace weft::cli
