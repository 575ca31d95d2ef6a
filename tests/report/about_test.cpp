// Report sections about the run itself: its program, machine and results.
#include "weft/report/about.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/report/analyse.h"
#include "weft/report/experts.h"
#include "weft/report/render.h"

namespace weft::report {
namespace about_test {

namespace fs = std::filesystem;

class RunFolder : public ::testing::Test {
 protected:
  RunFolder() { fs::create_directories(folder_); }
  ~RunFolder() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::temp_directory_path() / base::text("weft_about_{}", ::getpid());
};

config::Config four_ranks() {
  config::Config run;
  run.runtime.world_size = 4;
  run.model.pipeline_model_parallel_size = 2;
  run.train.global_batch_size = 8;
  return run;
}

TEST_F(RunFolder, TellsItsStartsAndAFreshOneReplacesThem) {
  keep_start(folder_, {.step = 0, .time = "a", .version = "0.1.0", .cpu = "one", .cores = 2});
  keep_start(folder_, {.step = 7, .time = "b", .version = "0.1.0", .cpu = "two", .cores = 4});
  const std::vector<Start> starts = read_starts(folder_);
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[1].step, 7);
  EXPECT_EQ(machine_text(starts[1]), "two, 4 cores");
  keep_start(folder_, {.step = 0, .time = "c"});
  ASSERT_EQ(read_starts(folder_).size(), 1u);
  base::write_whole(folder_ / "starts.jsonl", "{\"step\":-4}\n7\n\x01\n{\"cpu\":5}\n");
  EXPECT_EQ(read_starts(folder_).size(), 2u) << "damaged lines are passed over";
  EXPECT_EQ(read_starts(folder_)[0].step, 0);
}

// Only the last starts of a long file are read, and none is dropped.
TEST_F(RunFolder, AddsToItsStartsHoweverManyThereAre) {
  const std::string line = "{\"step\":3,\"time\":\"" + std::string(20'000, 't') + "\"}\n";
  std::string many = "{\"step\":0,\"time\":\"first\"}\n";
  while (many.size() <= 5u << 20) many += line;
  base::write_whole(folder_ / "starts.jsonl", many + "{\"step\":4,\"ti");
  keep_start(folder_, {.step = 5, .time = "last"});
  const std::string kept = base::read_text(folder_ / "starts.jsonl");
  EXPECT_TRUE(kept.starts_with(many)) << kept.size();
  const std::vector<Start> starts = read_starts(folder_);
  ASSERT_GT(starts.size(), 100u);
  EXPECT_EQ(starts.front().step, 3);
  EXPECT_EQ(starts.back().time, "last") << "a line that was cut short takes no other with it";
  keep_start(folder_, {.step = 0, .time = "anew"});
  EXPECT_EQ(read_starts(folder_).size(), 1u) << "of the last run";
  EXPECT_TRUE(base::read_text(folder_ / "starts.jsonl").starts_with(kept)) << "and none is lost";
}

TEST_F(RunFolder, WithoutConfigNamesTheRunsThatAreInIt) {
  for (const char* name : {"runs/a", "runs/b", "c"}) {
    fs::create_directories(folder_ / name);
    base::write_whole(folder_ / name / "config.yaml", "train: {}\n");
  }
  EXPECT_EQ(runs_in(folder_).size(), 3u);
  try {
    read_evidence(folder_);
    FAIL() << "it is no run";
  } catch (const std::exception& error) {
    const std::string why = error.what();
    for (const char* name : {"runs/a", "runs/b", "/c"}) {
      EXPECT_NE(why.find(name), why.npos) << why;
    }
  }
}

TEST(Crowding, IsSaidWhereRanksShareCoresAndNowhereElse) {
  config::Config run = four_ranks();
  const std::vector<Start> two{{.step = 0, .time = "", .cores = 2}};
  EXPECT_NE(crowding_of(run, two).find("share 2 cores"), std::string::npos);
  EXPECT_EQ(crowding_of(run, {}), "") << "an older run does not say";
  EXPECT_EQ(crowding_of(run, {{.step = 0, .time = "", .cores = 4}}), "");
  run.runtime.device = config::DeviceKind::Cuda;
  EXPECT_EQ(crowding_of(run, two), "");
}

TEST(About, NamesModelLayoutBatchRateMachineAndVersion) {
  Evidence evidence{.name = "a", .kind = "run", .config = {}, .steps = {}};
  evidence.config = config::Config{};
  evidence.starts = {{.step = 0,
                      .time = "noon",
                      .version = "0.1.0",
                      .build = "Release",
                      .cpu = "a processor",
                      .cores = 8,
                      .memory_bytes = 1 << 30}};
  base::SortedJson line{{"iteration", 1}, {"lm_loss", 5.5}, {"eval_loss", 5.0}};
  LearningLines lines;
  lines.take(line);
  line = {{"iteration", 2}, {"lm_loss", 4.5}, {"skipped_iterations", 1}};
  lines.take(line);
  evidence.learning = lines.finish();
  const Report report = analyse(evidence);
  const std::string text = to_text(report);
  for (const char* part : {"model ",
                           "ranks ",
                           "1 rank (threads)",
                           "batch ",
                           "rate ",
                           "a processor, 8 cores",
                           "0.1.0, Release build",
                           "loss 5.5 -> 4.5 in 2 steps",
                           "held-out 5 after step 1",
                           "1 step not finite"}) {
    EXPECT_NE(text.find(part), text.npos) << part << text;
  }
  const base::Json json = to_json(report);
  EXPECT_EQ(json["learning"]["points"].size(), 2u);
  EXPECT_EQ(json["about"]["machine"], "a processor, 8 cores, 1.0 GiB");
  EXPECT_TRUE(json["crowded"].is_null());
}

TEST(Learning, AStepWithoutALossIsLeftOutAndLongRunsAreThinned) {
  LearningLines lines;
  for (int step = 1; step <= 5000; ++step) {
    base::SortedJson line{{"iteration", step}, {"tokens_per_second", 10}};
    line["lm_loss"] = step == 3 ? base::SortedJson(nullptr) : base::SortedJson(step);
    lines.take(line);
  }
  const Learning learning = lines.finish().value();
  EXPECT_FALSE(learning.points[2].loss);
  const std::vector<Learning::Point> few = thinned(learning.points, 100);
  ASSERT_EQ(few.size(), 100u);
  EXPECT_EQ(few.back().step, 5000);
  EXPECT_NEAR(*few.back().loss, 4975.5, 1e-9);
  EXPECT_FALSE(LearningLines().finish());
}

// Kernel names as profilers wrote them.
TEST(Experts, AreWhereAKernelSpeaksOfThem) {
  trace::DeviceTraces traces;
  traces.names = {"nvjet_tst", "void at::native::indexSelectLargeIndex", "cast_fp8_kernel"};
  traces.devices = {{.device = 0, .kernels = {}, .memory = {}}};
  for (int name = 0; name < 3; ++name) {
    traces.devices[0].kernels.push_back({.begin_ns = 0, .end_ns = 2'000'000, .name = name});
  }
  Evidence evidence{.name = "a", .kind = "trace", .config = {}, .steps = {}};
  evidence.devices = traces;
  EXPECT_FALSE(experts_in(evidence)) << "an embedding selects rows as well";
  evidence.devices->names.push_back("moe_permute_topK_kernel");
  evidence.devices->devices[0].kernels.push_back({.begin_ns = 0, .end_ns = 3'000'000, .name = 3});
  ASSERT_TRUE(experts_in(evidence));
  EXPECT_DOUBLE_EQ(experts_in(evidence)->rows_ms, 5) << "rows are brought for 5 ms; casts are none";
}

}  // namespace about_test
}  // namespace weft::report
