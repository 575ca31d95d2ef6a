// weft bench gpu: refusals, and the report on made-up rates; tests/measure has the measurements.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>

#include "tests/cli/program_support.h"
#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/cli/bench/gpu_bench_report.h"
#include "weft/cli/run/child.h"
#include "weft/cli/run/gpu_peers.h"
#include "weft/kernels/device.h"

namespace weft::cli {
namespace bench_gpu_test {

using base::Json;
using tensor::Deterministic;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(BenchGpu, HelpNamesItsPartsAndPeers) {
  const Outcome help = weft("bench gpu --help");
  EXPECT_EQ(help.code, 0);
  for (const char* part : {"--only",
                           "ceilings|kernels|products|attention|step",
                           "--peer",
                           "--peer-limit",
                           "qwen3_30b_a3b_gpu",
                           "Example: weft bench gpu"}) {
    EXPECT_TRUE(has(help.out, part)) << part << "\n" << help.out;
  }
  EXPECT_TRUE(has(weft("bench --help").out, "gpu")) << "it is among the benches";
}

TEST(BenchGpu, RefusesWhatIsNoGpuOrMoreThanOne) {
  const Outcome cpu = weft("bench gpu runtime.device=cpu");
  EXPECT_EQ(cpu.code, 2);
  EXPECT_TRUE(has(cpu.err, "runtime.device=cuda")) << cpu.err;
  const Outcome ranks = weft("bench gpu train.global_batch_size=8 world=2");
  EXPECT_EQ(ranks.code, 2);
  EXPECT_TRUE(has(ranks.err, "one card")) << ranks.err;
  EXPECT_TRUE(has(ranks.err, "one micro-batch")) << ranks.err;
  const Outcome part = weft("bench gpu --only everything");
  EXPECT_EQ(part.code, 2);
  EXPECT_TRUE(has(part.err, "--only")) << part.err;
  EXPECT_EQ(weft("bench gpu --rounds 0").code, 2);
}

TEST(BenchGpu, SaysThatThereIsNoGpu) {
  if (!kernels::gpu_report().gpus.empty()) GTEST_SKIP() << "skipped: there is a GPU";
  const Outcome outcome = weft("bench gpu --only ceilings --json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(has(outcome.err, "there is no GPU")) << outcome.err;
  EXPECT_TRUE(Json::parse(outcome.out).contains("error")) << outcome.out;
}

TEST(BenchGpu, ItsRecipeRuns) {
  const Json json = Json::parse(weft("check qwen3_30b_a3b_gpu --json").out);
  EXPECT_TRUE(json["legal"].get<bool>());
  EXPECT_TRUE(json["runs"].get<bool>());
}

GpuBench made_up() {
  GpuBench bench{.card = "NVIDIA H200", .model = "a model"};
  bench.ceilings =
      {.flops = 800e12, .copy = 4e12, .fill = 3e12, .upload = 50e9, .download = 55e9, .both = 48e9};
  bench.lines.push_back(
      {.section = GpuSection::Kernels,
       .rate = {.name = "adamw", .shape = "1000 values", .work = 4e9, .seconds = 2e-3},
       .ceiling = 4e12,
       .least_share = 0.8});
  bench.lines.push_back({.section = GpuSection::Products,
                         .rate = {.name = "FC1 forward",
                                  .shape = "128 x 256 rows",
                                  .unit = measure::WorkUnit::Flop,
                                  .work = 6e11,
                                  .seconds = 1e-3},
                         .ceiling = 800e12,
                         .peer_seconds = 1.2e-3,
                         .peer = "PyTorch grouped_mm",
                         .least_ratio = 1});
  const kernels::hopper::TileDesc desc{.pass = kernels::hopper::Pass::Dgrad, .n = 384};
  const kernels::hopper::Card hopper{.is_hopper = true,
                                     .multiprocessors = 132,
                                     .shared_bytes = kernels::hopper::kMostSharedBytes};
  bench.tiles.push_back({"FC1", desc, kernels::hopper::choose_tile(desc, hopper)});
  bench.step.emplace();
  bench.step->whole = {.sequences = 4,
                       .seconds = 0.1,
                       .tokens_per_second = 163840,
                       .flops_per_second = 400e12};
  bench.step->single = measure::BatchTime{.sequences = 1,
                                          .seconds = 0.04,
                                          .tokens_per_second = 102400,
                                          .flops_per_second = 3e14};
  bench.step->losses = {12, 12, 12, 12};
  bench.step->shares = {.products = 0.06, .attention = 0.025, .memory = 0.01, .idle = 0.005};
  bench.step->operations = {{.name = "linear_forward", .calls = 8, .seconds = 0.02}};
  return bench;
}

TEST(BenchGpu, BarsArePassedAndMissedByTheirNumbers) {
  GpuBench bench = made_up();
  std::vector<report::Bar> bars = bars_of(bench);
  ASSERT_EQ(bars.size(), 3u) << "those of the step's peer need one";
  EXPECT_DOUBLE_EQ(bars[0].value, 0.5);
  EXPECT_FALSE(bars[0].met());
  EXPECT_NEAR(bars[1].value, 1.2, 1e-9);
  EXPECT_TRUE(bars[1].met());
  EXPECT_NEAR(bars[2].value, 0.15, 1e-9);
  EXPECT_TRUE(bars[2].met());
  bench.step_peer = StepPeer{.name = "peer", .whole_seconds = 0.161, .single_seconds = 0.0427};
  bars = bars_of(bench);
  ASSERT_EQ(bars.size(), 5u);
  EXPECT_TRUE(bars[2].met()) << "1.61 of 1.3";
  EXPECT_FALSE(bars[3].met()) << "1.07 of 1.2";
}

TEST(BenchGpu, TextAndJsonSayTheSame) {
  GpuBench bench = made_up();
  bench.peer_failures = {"transformers_step.py: exit code 1: no memory"};
  bench.clock = GpuClock{.most_mhz = 1980, .most_watts = 700};
  bench.clock->parts.push_back({"FC1, 128 x 256 rows",
                                {.samples = 4,
                                 .lowest_mhz = 1500,
                                 .median_mhz = 1550,
                                 .highest_mhz = 1980,
                                 .median_watts = 690,
                                 .power_share = 0.75}});
  const report::Document document = document_of(bench);
  const std::string shown = document.to_text();
  for (const char* part : {"800.0 TFLOP/s",
                           "median MHz",
                           "1550",
                           "75 %",
                           "adamw",
                           "FC1 forward",
                           "1.20",
                           "linear_forward",
                           "FC1 dgrad, 384 columns",
                           "128 x 192 x 64, 4 stages: 384 columns covered",
                           "NOT MET adamw",
                           "NO PEER transformers_step.py"}) {
    EXPECT_TRUE(has(shown, part)) << part << "\n" << shown;
  }
  const Json json = document.to_json();
  EXPECT_EQ(json["tiles"][0]["pass"], "dgrad");
  EXPECT_EQ(json["tiles"][0]["best"], 1);
  EXPECT_EQ(json["tiles"][0]["candidates"][1]["verdict"], "best");
  EXPECT_EQ(json["tiles"][0]["candidates"][2]["stages"], 6);
  EXPECT_EQ(json["ceilings"]["gemm_tflops"], 800.0);
  EXPECT_EQ(json["ceilings"]["copy_gbps"], 4000.0);
  EXPECT_EQ(json["ceilings"]["fill_gbps"], 3000.0);
  EXPECT_EQ(json["ceilings"]["link_gbps"], 50.0);
  EXPECT_EQ(json["clock"]["parts"][0]["median_mhz"], 1550);
  ASSERT_EQ(json["kernels"].size(), 2u);
  EXPECT_DOUBLE_EQ(json["kernels"][0]["value"].get<double>(), 2000);
  EXPECT_EQ(json["kernels"][0]["unit"], "GB/s");
  EXPECT_DOUBLE_EQ(json["kernels"][0]["share"].get<double>(), 0.5);
  EXPECT_TRUE(json["kernels"][0]["ratio"].is_null());
  EXPECT_NEAR(json["kernels"][1]["ratio"].get<double>(), 1.2, 1e-9);
  EXPECT_NEAR(json["kernels"][1]["peer"].get<double>(), 500, 1e-9);
  EXPECT_NEAR(json["step"]["ms"].get<double>(), 100, 1e-9);
  EXPECT_TRUE(json["step"]["peer_ms"].is_null());
  EXPECT_EQ(json["bars"].size(), 3u);
  EXPECT_EQ(json["peer_failures"].size(), 1u);
}

TEST(BenchGpu, AnAttentionPeerIsCuDnnOrTheFastestThatHasTheMode) {
  const Json answer = Json::parse(R"({"version": "2.11", "attention": [{
      "varying": {"flash": {"forward": 1, "backward": 3}, "cudnn": {"forward": 2, "backward": 4}},
      "deterministic": {"cudnn": {"error": "no"}, "efficient": {"forward": 9, "backward": 8},
                        "flash": {"forward": 1, "backward": 5}}}]})");
  const auto seconds = [&](Deterministic mode, const char* direction) {
    return attention_time(answer, 0, mode, direction).value().seconds;
  };
  EXPECT_EQ(seconds(Deterministic::No, "forward"), 2);
  EXPECT_EQ(seconds(Deterministic::No, "backward"), 4);
  EXPECT_EQ(seconds(Deterministic::Yes, "forward"), 2);
  EXPECT_EQ(seconds(Deterministic::Yes, "backward"), 5);
  EXPECT_FALSE(attention_time(answer, 1, Deterministic::No, "forward"));
  EXPECT_FALSE(product_time(answer, 0, "forward"));
}

TEST(BenchGpu, AStepPeerSaysWhatItTimed) {
  const measure::DeviceStep step = *made_up().step;
  const Json settings = transformers_settings(step, 4096, 10);
  EXPECT_EQ(settings["sequences"], (Json{4, 1}));
  const StepPeer peer =
      step_peer_of(Json::parse(R"({"version": "5.17", "torch": "2.11", "attention": "sdpa, cuDNN",
          "loss_difference": 1e-5,
          "batches": [{"sequences": 4, "seconds": 0.16}, {"sequences": 1, "seconds": 0.04}]})"),
                   step);
  EXPECT_TRUE(has(peer.name, "sdpa, cuDNN")) << peer.name;
  EXPECT_EQ(peer.whole_seconds, 0.16);
  EXPECT_EQ(peer.single_seconds, 0.04);
  EXPECT_ANY_THROW(step_peer_of(Json::parse("{}"), step));
}

TEST(Child, GivesItsOutputAndTellsItsLines) {
  std::vector<std::string> lines;
  const ChildResult result =
      run_child({"sh", "-c", "echo out; echo one >&2; echo two >&2"},
                {.progress = [&](const auto& line) { lines.push_back(line); }});
  EXPECT_FALSE(result.failure) << *result.failure;
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
}

TEST(Child, SaysWhyItFailed) {
  EXPECT_EQ(run_child({"sh", "-c", "echo why >&2; exit 3"}).failure, "exit code 3: why");
}

TEST(Child, ThatCannotBeStartedIsAnErrorWithItsReason) {
  try {
    run_child({"/no/such/program"});
    FAIL() << "no error";
  } catch (const base::SystemError& error) {
    EXPECT_STREQ(error.what(), "cannot start /no/such/program: No such file or directory");
  }
  EXPECT_THROW(run_child({"/"}), base::SystemError);
}

TEST(Child, IsEndedWithAllThatItStarted) {
  const ChildResult late = run_child({"sh", "-c", "sleep 100 & sleep 100"}, {.limit_seconds = 0.2});
  EXPECT_TRUE(late.failure && has(*late.failure, "longer than")) << late.failure.value_or("none");
  const std::atomic<bool> stop = true;
  EXPECT_TRUE(run_child({"sleep", "100"}, {.stop = &stop}).was_ended);
}

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSoon(30);  // far below the 100 s of the sleeps

TEST(Child, IsNotOutlivedByWhatItLeavesBehind) {
  const Clock::time_point begin = Clock::now();
  const ChildResult result = run_child({"sh", "-c", "sleep 100 & echo out; exit 0"});
  EXPECT_FALSE(result.failure) << *result.failure;
  EXPECT_EQ(result.output, "out\n");
  EXPECT_LT(Clock::now() - begin, kSoon);
}

TEST(Child, IsEndedThoughItsPipesAreClosedOrHeldByAnother) {
  const Clock::time_point begin = Clock::now();
  EXPECT_TRUE(
      run_child({"sh", "-c", "exec >&- 2>&-; sleep 100"}, {.limit_seconds = 0.2}).was_ended);
  EXPECT_TRUE(
      run_child({"sh", "-c", "setsid sleep 60 & sleep 100"}, {.limit_seconds = 0.5}).was_ended);
  EXPECT_LT(Clock::now() - begin, kSoon);
}

TEST(Child, GivesAllThatItWroteBeforeItsEnd) {
  const ChildResult result = run_child({"sh", "-c", "head -c 1000000 /dev/zero"});
  EXPECT_FALSE(result.failure) << *result.failure;
  EXPECT_EQ(result.output.size(), 1000000u);
}

TEST(Child, IsEndedByWhatProgressThrows) {
  pid_t child = 0;
  EXPECT_THROW(run_child({"sh", "-c", "echo $$ >&2; sleep 100"},
                         {.progress =
                              [&](const std::string& line) {
                                child = std::stoi(line);
                                throw std::runtime_error("no more");
                              }}),
               std::runtime_error);
  ASSERT_GT(child, 0);
  EXPECT_EQ(::kill(child, 0), -1) << "it still runs";
}

// Only the child holds the pipe.
TEST(Child, DiesWithWhoStartedIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::close(ends[0]);
    run_child({"sh", "-c", "echo up >&2; exec sleep 100"},
              {.progress = [](const std::string&) { ::kill(::getpid(), SIGKILL); }});
    ::_exit(1);
  }
  ASSERT_GT(parent, 0);
  ::close(ends[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_TRUE(WIFSIGNALED(status));
  pollfd end{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&end, 1, 30'000), 1) << "it still runs";
  ::close(ends[0]);
}

TEST(Peers, AreProgramsThatPythonReads) {
  if (shell("sh", "command -v python3").code != 0) GTEST_SKIP() << "skipped: there is no python3";
  const Outcome outcome = shell(
      "sh",
      "python3 -c 'import ast, glob, sys\nfor f in sorted(glob.glob(sys.argv[1] + \"/*.py\")): "
      "ast.parse(open(f).read(), f); print(f)' '" WEFT_SOURCE_DIR "/bench/peers'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"torch_step.py", "torch_kernels.py", "transformers_step.py"}) {
    EXPECT_TRUE(has(outcome.out, name)) << outcome.out;
  }
}

}  // namespace bench_gpu_test
}  // namespace weft::cli
