// A resumed run has the bits of an uninterrupted one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <set>
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
namespace resume_test {

namespace fs = std::filesystem;
using base::Json;
using base::text;

const std::string kSource = WEFT_SOURCE_DIR;

class Resume : public ::testing::Test {
 protected:
  Resume() : folder_(fs::path(::testing::TempDir()) / text("weft_resume_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~Resume() override { fs::remove_all(folder_); }

  // Metrics are in run, checkpoints in run_saved.
  std::string words(const std::string& run, const std::string& more) const {
    const std::string folder = (folder_ / run).string();
    return text(
        "train tiny dataset.path={}/recipes/corpus.txt model.num_layers=1 model.seq_length=16 "
        "model.hidden_size=32 model.num_attention_heads=2 model.num_query_groups=2 "
        "model.kv_channels=16 model.moe_ffn_hidden_size=16 logger.log_interval=1 "
        "scheduler.lr_warmup_iters=2 train.eval_interval=3 runtime.run_dir={} "
        "checkpoint.save={}_saved "
        "checkpoint.load={}_saved {}",
        kSource,
        folder,
        folder,
        folder,
        more);
  }

  // Each step's record without times.
  std::vector<Json> records(const std::string& run) const {
    std::vector<Json> all;
    for (const std::string& line :
         base::split(base::read_text(folder_ / run / "metrics.jsonl"), '\n')) {
      if (line.empty()) continue;
      Json record = Json::parse(line);
      for (const char* key :
           {"iteration_time_ms", "throughput_tflops_per_rank", "tokens_per_second"}) {
        EXPECT_EQ(record.erase(key), 1u) << key;
      }
      all.push_back(std::move(record));
    }
    return all;
  }

  std::string shard(const std::string& run, std::int64_t step, int rank) const {
    return base::read_text(folder_ / (run + "_saved") / text("iter_{:07}", step) /
                           text("rank_{}.safetensors", rank));
  }

  void expect_same_run(const std::string& a, const std::string& b, std::int64_t step) const {
    EXPECT_EQ(records(a), records(b));
    for (const int rank : {0, 1}) EXPECT_EQ(shard(a, step, rank), shard(b, step, rank));
  }

  fs::path folder_;
};

TEST_F(Resume, ThreeStepsAndThreeMoreAreSixToTheBit) {
  ASSERT_EQ(weft(words("whole", "train.train_iters=6")).code, 0);
  const std::string parts = words("parts", "train.train_iters=6 train.exit_interval=3");
  const Outcome first = weft(parts);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(records("parts").size(), 3u);
  const Outcome second = weft(parts + " --json");
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE(second.err.find("iter_0000003' after step 3, 24 samples consumed"), std::string::npos)
      << second.err;
  const Json json = Json::parse(second.out);
  EXPECT_EQ(json.at("first_step"), 3);
  EXPECT_EQ(json.at("steps"), 6);
  EXPECT_EQ(json.at("checkpoint"), (folder_ / "parts_saved" / "iter_0000006").string());
  expect_same_run("whole", "parts", 6);
  const Outcome third = weft(parts);
  EXPECT_EQ(third.code, 0) << third.err;
  EXPECT_TRUE(third.out.starts_with("nothing left to do: train.train_iters=6 is reached\n"))
      << third.out;
  expect_same_run("whole", "parts", 6);
}

// A run waits for the end of another: the latest checkpoint of that run counts.
TEST_F(Resume, WhatTheRunBeforeSavedWhileThisOneWaitedIsGoneOnFrom) {
  ASSERT_EQ(weft(words("run", "train.train_iters=2")).code, 0);
  const fs::path saved = folder_ / "run_saved", aside = folder_ / "aside";
  fs::rename(saved, aside);
  fs::create_directories(saved);
  std::optional<base::Descriptor> lock = checkpoint::lock_folder(saved);
  Outcome second;
  std::thread waiting([&] { second = weft(words("run", "train.train_iters=3")); });
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  for (const auto& entry : fs::directory_iterator(aside)) {
    fs::rename(entry.path(), saved / entry.path().filename());
  }
  lock.reset();
  waiting.join();
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_NE((second.out + second.err).find("iter_0000002' after step 2"), std::string::npos)
      << second.out << second.err;
  EXPECT_EQ(records("run").size(), 3u);
}

// Steps after the last checkpoint are repeated, and recorded once.
TEST_F(Resume, StepsThatWereNotSavedAreToldOnce) {
  const std::string run = words("run", "train.train_iters=4 checkpoint.save_interval=2");
  ASSERT_EQ(weft(run).code, 0);
  const std::vector<Json> before = records("run");
  const fs::path last = folder_ / "run_saved/iter_0000004/manifest.json";
  const std::string manifest = base::read_text(last);
  const Outcome refused = weft(run + " checkpoint.ckpt_step=2");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("has checkpoints of step 4, which this run would replace"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(base::read_text(last), manifest);
  EXPECT_EQ(records("run"), before);
  const Outcome again = weft(run + " checkpoint.ckpt_step=2 --overwrite");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_NE(again.out.find("after step 2"), std::string::npos) << again.out;
  EXPECT_EQ(records("run"), before);
  const fs::path kept = folder_ / "run/metrics.1.jsonl";
  EXPECT_NE(again.out.find("does not go on from: " + kept.string()), std::string::npos)
      << again.out;
  EXPECT_EQ(base::split(base::read_text(kept), '\n').size(), 3u) << "steps 3 and 4, and the end";
}

// The folder of step 2 cannot be created.
TEST_F(Resume, ASaveBesideTheRunIsToldAtItsBeginAndItsEndAndEndsBeforeTheNext) {
  const std::string more = "train.train_iters=4 checkpoint.save_interval=1";
  ASSERT_EQ(weft(words("now", more)).code, 0);
  fs::create_directories(folder_ / "beside_saved");
  base::write_whole(folder_ / "beside_saved" / "iter_0000002", "a file");
  const Outcome outcome = weft(words("beside", more + " checkpoint.async_save=true"));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("checkpoint.save: 1 checkpoint not written"), std::string::npos)
      << outcome.err;
  std::vector<std::string> told;
  for (const std::string& line : base::split(outcome.out, '\n')) {
    const std::size_t step = line.find("iter_000000");
    if (step == std::string::npos || line.find("weft_resume") > step) continue;
    told.push_back(line.substr(0, 6) + " " + line.substr(step + 11, 1));
  }
  told.resize(8);
  EXPECT_EQ(told,
            (std::vector<std::string>{"saving 1",
                                      "saved  1",
                                      "saving 2",
                                      "warnin 2",
                                      "saving 3",
                                      "saved  3",
                                      "saving 4",
                                      "saved  4"}))
      << outcome.out;
  expect_same_run("now", "beside", 4);
  EXPECT_EQ(shard("now", 3, 1), shard("beside", 3, 1));
}

TEST_F(Resume, SavesBesideTheRunUnderMpiHaveTheBitsOfThreads) {
  if (!comm::has_mpi() || kSanitized) GTEST_SKIP() << "skipped: needs MPI without sanitizers";
  const std::string more = "train.train_iters=3 checkpoint.save_interval=1";
  ASSERT_EQ(weft(words("threads", more)).code, 0);
  const std::string command = text(
      "'{}/tools/mpirun.sh' -n 2 '{}' {} runtime.backend=mpi checkpoint.async_save=true "
      "> '{}' 2>&1",
      kSource,
      WEFT_BINARY,
      words("mpi", more),
      (folder_ / "out").string());
  ASSERT_EQ(std::system(command.c_str()), 0) << base::read_text(folder_ / "out");
  expect_same_run("threads", "mpi", 3);
  for (const int rank : {0, 1}) EXPECT_EQ(shard("threads", 2, rank), shard("mpi", 2, rank));
}

TEST_F(Resume, TheCommandSaysWhatIsThere) {
  ASSERT_EQ(weft(words("run", "train.train_iters=2")).code, 0);
  const fs::path saved = folder_ / "run_saved";
  const Outcome shown = weft(text("checkpoint show {} --json", saved.string()));
  ASSERT_EQ(shown.code, 0) << shown.err;
  const Json json = Json::parse(shown.out);
  EXPECT_EQ(json.at("step"), 2);
  EXPECT_EQ(json.at("samples"), 16);
  EXPECT_EQ(json.at("files"), 2);
  EXPECT_EQ(json.at("layout").at("ep"), 2);
  EXPECT_EQ(json.at("whole"), true);
  const auto weight = std::ranges::find_if(json.at("tensors"), [](const Json& tensor) {
    return tensor.at("name") == "weights/embedding.weight";
  });
  ASSERT_NE(weight, json.at("tensors").end());
  EXPECT_EQ(weight->at("shape"), (Json{256, 32}));
  EXPECT_EQ(weight->at("dtype"), "F32");
  EXPECT_EQ(weight->at("bytes"), 256 * 32 * 4);
  EXPECT_EQ(json.at("state").at("weights").at("elements"),
            json.at("state").at("optimizer.moment2").at("elements"));
  EXPECT_NE(weft("checkpoint show " + saved.string()).out.find("written by  2 ranks"),
            std::string::npos);
  const std::string verify = text("checkpoint show {} --verify", saved.string());
  EXPECT_NE(weft(verify).out.find("whole       yes, every byte has its checksum"),
            std::string::npos);
  const fs::path shard = saved / "iter_0000002" / "rank_1.safetensors";
  std::string bytes = base::read_text(shard);
  bytes[bytes.size() - 9] ^= 1;
  base::write_whole(shard, bytes);
  EXPECT_EQ(weft("checkpoint show " + saved.string()).code, 0) << "its sizes are right";
  const Outcome damaged = weft(verify + " --json");
  EXPECT_EQ(damaged.code, 1);
  EXPECT_EQ(Json::parse(damaged.out).at("verified"), true);
  EXPECT_NE(Json::parse(damaged.out).at("wrong").dump().find("rank_1.safetensors' is damaged"),
            std::string::npos)
      << damaged.out;
  fs::resize_file(saved / "iter_0000002" / "rank_1.safetensors", 10);
  const Outcome cut = weft("checkpoint show " + saved.string());
  EXPECT_EQ(cut.code, 1);
  EXPECT_NE(cut.out.find("NOT WHOLE   rank_1.safetensors has 10 bytes"), std::string::npos);
  EXPECT_EQ(weft("checkpoint show " + (folder_ / "none").string()).code, 2);
}

TEST_F(Resume, AnotherLayoutGoesOn) {
  if (!comm::has_mpi() || kSanitized) GTEST_SKIP() << "skipped: needs MPI without sanitizers";
  const std::string more = " train.train_iters=4 train.exit_interval=2";
  ASSERT_EQ(weft(words("run", more)).code, 0);
  const std::string command = text(
      "'{}/tools/mpirun.sh' -n 4 '{}' {} runtime.backend=mpi world=4 "
      "ddp.use_distributed_optimizer=true > '{}' 2>&1",
      kSource,
      WEFT_BINARY,
      words("run", more),
      (folder_ / "out").string());
  const int status = std::system(command.c_str());
  const std::string out = base::read_text(folder_ / "out");
  ASSERT_EQ(status, 0) << out;
  EXPECT_NE(out.find("written by 2 ranks"), std::string::npos) << out;
  ASSERT_EQ(records("run").size(), 4u);
  EXPECT_LT(records("run")[3].at("lm_loss"), records("run")[0].at("lm_loss"));
}

TEST_F(Resume, ADamagedShardEndsTheRunBeforeItsFirstStepAndIsNamed) {
  const std::string run = words("run", "train.train_iters=2 train.exit_interval=1");
  ASSERT_EQ(weft(run).code, 0);
  const fs::path file = folder_ / "run_saved" / "iter_0000001" / "rank_1.safetensors";
  std::string bytes = base::read_text(file);
  bytes[bytes.size() - 100] ^= 4;
  base::write_whole(file, bytes);
  const Outcome outcome = weft(run);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("rank_1.safetensors' is damaged"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("no whole checkpoint before it"), std::string::npos) << outcome.err;
}

// The checkpoint before is used only on the user's request.
TEST_F(Resume, AShardThatIsCutShortIsNamedWithTheWayBack) {
  const std::string run = words("run", "train.train_iters=3 checkpoint.save_interval=1");
  ASSERT_EQ(weft(run).code, 0);
  const std::vector<Json> before = records("run");
  fs::resize_file(folder_ / "run_saved" / "iter_0000003" / "rank_1.safetensors", 1000);
  const Outcome refused = weft(run);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("rank_1.safetensors has 1000 bytes"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("checkpoint.ckpt_step=2"), std::string::npos) << refused.err;
  const Outcome back = weft(run + " checkpoint.ckpt_step=2");
  EXPECT_EQ(back.code, 0) << back.err;
  EXPECT_NE(back.out.find("after step 2"), std::string::npos) << back.out;
  EXPECT_EQ(records("run"), before);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// Starts the program and kills it, as by a lost machine, a time after it began a save. True: killed
// before the program's end.
bool start_and_kill(const std::string& arguments,
                    const fs::path& saved,
                    std::chrono::microseconds after) {
  const std::set<std::string> before = names_in(saved);
  const auto has_begun = [&] {
    return std::ranges::any_of(names_in(saved), [&](const std::string& name) {
      return name.starts_with("iter_") && !before.contains(name);
    });
  };
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string command = text("exec '{}' {} > /dev/null 2>&1", WEFT_BINARY, arguments);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (!has_begun()) {
    if (::waitpid(child, &status, WNOHANG) != 0) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  std::this_thread::sleep_for(after);
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// Newest by name of the folders with a manifest: this run never goes back.
fs::path newest_whole(const fs::path& saved) {
  fs::path newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(saved, error)) {
    if (fs::exists(entry.path() / "manifest.json")) newest = std::max(newest, entry.path());
  }
  return newest;
}

// Random moments from the beginning of a save on, half of them soon after it.
TEST_F(Resume, AfterEveryKillToTheSameBits) {
  const int kills = few_or_many(10, 200);
  const int steps = 6 * kills;
  ASSERT_EQ(weft(words("whole", text("train.train_iters={}", steps))).code, 0);
  const std::string run =
      words("killed", text("train.train_iters={} checkpoint.save_interval=1", steps));
  const fs::path saved = folder_ / "killed_saved";
  std::mt19937 random(1117);
  int unfinished = 0;
  for (int i = 0; i < kills; ++i) {
    const std::string keys =
        text(" checkpoint.async_save={} checkpoint.most_recent_k={}", i % 2 == 1, i / 2 % 2 + 1);
    const std::chrono::microseconds after(random() % (i % 4 < 2 ? 2'000 : 30'000));
    EXPECT_TRUE(start_and_kill(run + keys, saved, after)) << "the run was too short";
    const auto found = checkpoint::find_checkpoint(saved);
    EXPECT_EQ(found ? found->folder : fs::path(), newest_whole(saved));
    unfinished += std::ranges::any_of(names_in(saved), [&](const std::string& name) {
      return name.starts_with("iter_") && !fs::exists(saved / name / "manifest.json");
    });
  }
  EXPECT_GT(unfinished, 0) << "no kill came inside a save";
  const Outcome outcome = weft(run + " checkpoint.async_save=true checkpoint.most_recent_k=2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  expect_same_run("whole", "killed", steps);
  const std::set<std::string> left = names_in(saved);
  EXPECT_EQ(std::ranges::count_if(left, [](const auto& name) { return name.starts_with("iter_"); }),
            2);
}

// Processes of the program with the folder in their command line.
std::vector<pid_t> ranks_of(const fs::path& folder) {
  std::vector<pid_t> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const pid_t id = std::atoi(entry.path().filename().c_str());
    if (id <= 0) continue;
    std::ifstream name(entry.path() / "comm"), line(entry.path() / "cmdline");
    std::string comm, command;
    std::getline(name, comm);
    std::getline(line, command);
    if (comm == "weft" && command.find(folder.string()) != command.npos) all.push_back(id);
  }
  return all;
}

// Ranks are killed, and tools/mpirun.sh restarts the job.
TEST_F(Resume, AfterEveryLostRankToTheSameBits) {
  if (!comm::has_mpi() || kSanitized) GTEST_SKIP() << "skipped: needs MPI without sanitizers";
  const int kills = few_or_many(2, 200);
  const std::string more = text("train.train_iters={} checkpoint.most_recent_k=2", 20 * kills + 10);
  ASSERT_EQ(weft(words("whole", more)).code, 0);
  const fs::path out = folder_ / "out";
  const pid_t job = ::fork();
  if (job == 0) {
    const std::string command = text(
        "OMPI_MCA_odls_base_sigkill_timeout=0 exec '{}/tools/mpirun.sh' --restarts={} -n 2 '{}' {} "
        "> '{}' 2>&1",
        kSource,
        kills,
        WEFT_BINARY,
        words("killed",
              more + " checkpoint.save_interval=1 checkpoint.async_save=true runtime.backend=mpi"),
        out.string());
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  int killed = 0, status = 0;
  std::size_t told = 0;  // length of the job's output at the last kill
  while (::waitpid(job, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 7 * killed % 40));
    const std::string said = fs::exists(out) ? base::read_text(out) : "";
    if (killed == kills || said.find("saved ", told) == said.npos) continue;
    std::vector<pid_t> ranks = ranks_of(folder_ / "killed");
    if (ranks.empty()) continue;
    told = said.size();
    if (killed % 3 != 1) ranks = {ranks[static_cast<std::size_t>(killed) % ranks.size()]};
    ++killed;  // one rank, or all as with their machine
    for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
  }
  EXPECT_EQ(status, 0) << base::read_text(out);
  EXPECT_EQ(killed, kills) << "the run was too short";
  const std::string said = base::read_text(out);
  EXPECT_NE(said.find(text("restart {} of {}", kills, kills)), said.npos) << said;
  expect_same_run("whole", "killed", 20 * kills + 10);
}

// With a stand-in for mpirun, which prints its arguments and fails as told.
TEST_F(Resume, RestartsAreCountedAndTakeTheLayoutGiven) {
  const std::string tool = text("'{}/tools/mpirun.sh'", kSource);
  const fs::path log = folder_ / "log";
  base::write_whole(folder_ / "mpirun",
                    // Its rank exists before the log line: signals go to the rank.
                    text("#!/bin/sh\nsleep $SECONDS_EACH &\necho mpirun \"$@\" >> '{}'\nwait $!\n"
                         "exit $CODE\n",
                         log.string()));
  fs::permissions(folder_ / "mpirun", fs::perms::owner_all);
  const auto run = [&](const std::string& code, const std::string& words) {
    fs::remove(log);
    const Outcome outcome = shell("bash",
                                  text("export PATH='{}':$PATH CODE={} SECONDS_EACH=0; {} {}",
                                       folder_.string(),
                                       code,
                                       tool,
                                       words));
    return text("{}: {}", outcome.code, fs::exists(log) ? base::read_text(log) : "");
  };
  EXPECT_EQ(run("137", "--restarts=2 --then='4 ep=4' --then='2 ep=2 tp=1' -n 8 weft train tiny"),
            "137: mpirun -n 8 weft train tiny\nmpirun -n 4 weft train tiny ep=4\nmpirun -n 2 weft "
            "train tiny ep=2 tp=1\n");
  EXPECT_EQ(run("2", "--restarts=2 -n 8 weft"), "2: mpirun -n 8 weft\n")
      << "wrong input stays wrong";
  EXPECT_EQ(run("143", "--restarts=2 -n 8 weft"), "143: mpirun -n 8 weft\n")
      << "it was told to end";
  EXPECT_EQ(run("1", "-n 8 weft"), "1: mpirun -n 8 weft\n");
  for (const char* wrong : {"--restarts=x -n 2 weft",
                            "--restarts -n 2 weft",
                            "--restarts=1 --then=ep=2 -n 2 weft",
                            "--restarts=1 --then=2 weft",
                            "--restarts=1 -n 2 weft train checkpoint.ckpt_step=3"}) {
    EXPECT_EQ(run("1", wrong), "2: ") << wrong;
  }
  fs::remove(log);
  const Outcome told =
      shell("bash",
            text("export PATH='{}':$PATH CODE=143 SECONDS_EACH=20; {} --restarts=2 "
                 "-n 8 weft & for i in $(seq 200); do [ -s '{}' ] && break; sleep 0.05; done; "
                 "kill -USR1 $!; wait $!",
                 folder_.string(),
                 tool,
                 log.string()));
  EXPECT_EQ(told.code, 143) << "a signal goes to the ranks, and nothing is started again";
  EXPECT_EQ(base::read_text(log), "mpirun -n 8 weft\n");
}

}  // namespace resume_test
}  // namespace weft::cli
