#include "weft/schedule/passes/offloaded_optimizer.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/derive/derived.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace offloaded_optimizer_test {

enum class Copies { OneByOne, Overlapped };

config::Config offloading(const PlanCase& c, Copies copies, std::int64_t bucket_size) {
  config::Config config = config_of(c);
  config.optimizer.optimizer_cpu_offload = true;
  config.optimizer.optimizer_offload_fraction = 0.5;
  config.optimizer.overlap_cpu_optimizer_d2h_h2d = copies == Copies::Overlapped;
  config.runtime.optimizer_offload_bucket_size = bucket_size;
  return config;
}

std::vector<RankPlan> offloading_plans(const PlanCase& c,
                                       Copies copies,
                                       std::int64_t bucket_size = 20000) {
  const config::Config config = offloading(c, copies, bucket_size);
  return plan_step(config,
                   grid::Grid(derive::layout_of(config)),
                   config::RowBudget::AsConfigured,
                   c.detail);
}

// Nodes that a graph issues from a node on.
std::vector<std::string> from(const Graph& graph, const std::string& first) {
  std::vector<std::string> names;
  for (std::size_t i = find(graph, first); i < graph.entries.size(); ++i) {
    names.push_back(print(graph.entries[i].node));
  }
  return names;
}

TEST(OffloadedOptimizer, EveryOrderWithItIsRight) {
  int turn = 0;
  for (const PlanCase& c : some_cases(7)) {
    const Copies copies = turn++ / 2 % 2 == 0 ? Copies::OneByOne : Copies::Overlapped;
    EXPECT_EQ(verify_plan(offloading_plans(c, copies)), std::vector<std::string>()) << name(c);
  }
}

// One rank, with a bucket of experts and a dense one.
Graph small_graph(Copies copies) {
  const PlanCase one{.layers = "m", .ep = 1, .dp = 1, .micro_batches = 1};
  return offloading_plans(one, copies, 1 << 20)[0].training;
}

TEST(OffloadedOptimizer, BucketsGoOneByOneOrOneBehindTheOther) {
  EXPECT_EQ(from(small_graph(Copies::OneByOne), "norm"),
            (std::vector<std::string>{"norm",
                                      "clip",
                                      "optimizer",
                                      "download.expert",
                                      "update.expert",
                                      "upload.expert",
                                      "download.dense",
                                      "update.dense",
                                      "upload.dense"}));
  EXPECT_EQ(from(small_graph(Copies::Overlapped), "download.expert"),
            (std::vector<std::string>{"download.expert",
                                      "download.dense",
                                      "norm",
                                      "clip",
                                      "optimizer",
                                      "update.expert",
                                      "upload.expert",
                                      "update.dense",
                                      "upload.dense"}));
}

TEST(OffloadedOptimizer, OneBucketTravelsWhileAnotherIsChanged) {
  const PlanCase c{.layers = "mm", .micro_batches = 2};
  const Graph graph = offloading_plans(c, Copies::Overlapped)[0].training;
  EXPECT_TRUE(run_together(graph, "update.expert#1", "upload.expert#0"));
  EXPECT_TRUE(run_together(graph, "update.expert#1", "download.expert#2"));
  EXPECT_FALSE(run_together(graph, "update.expert#1", "download.expert#3")) << "no room for it";
  EXPECT_TRUE(run_together(graph, "optimizer", "update.expert#0"));
  const Graph plain = offloading_plans(c, Copies::OneByOne)[0].training;
  EXPECT_FALSE(run_together(plain, "update.expert#1", "upload.expert#0"));
  EXPECT_FALSE(run_together(plain, "update.expert#1", "download.expert#2"));
}

// Without other ranks to sum with, gradients travel when their own pieces end.
TEST(OffloadedOptimizer, FirstGradientsTravelUnderTheRestOfTheBackward) {
  const PlanCase one{.layers = "mm", .ep = 1, .dp = 1, .micro_batches = 1};
  const Graph graph = offloading_plans(one, Copies::Overlapped)[0].training;
  EXPECT_TRUE(run_together(graph, "download.expert#0", "0W0.attention"));
  EXPECT_FALSE(run_together(graph, "download.expert#0", "1W0.experts"));
}

TEST(OffloadedOptimizer, WeightsAreGatheredWhenTheyAreBack) {
  PlanCase c{.layers = "mm", .micro_batches = 2};
  c.distributed = true;
  const RankPlan plan = offloading_plans(c, Copies::Overlapped, 10000)[0];
  const Graph& graph = plan.training;
  int uploads = 0;
  for (const OffloadedAnatomy& one : plan.anatomy.offloaded) {
    if (one.part != Part::Dense) continue;
    ++uploads;
    EXPECT_FALSE(run_together(graph, print(one.upload()), "gather.dense"));
  }
  EXPECT_GT(uploads, 1);
}

TEST(OffloadedOptimizer, AnUpdateThatDoesNotWaitIsFound) {
  const PlanCase c{.layers = "mm", .micro_batches = 2};
  const RankPlan plan = offloading_plans(c, Copies::Overlapped)[0];
  const auto complaints_without = [&](const std::string& node, const std::string& wait) {
    Graph graph = plan.training;
    std::erase(graph.entries[find(graph, node)].waits, static_cast<int>(find(graph, wait)));
    return verify(graph, plan.anatomy, plan.shape.micro_batches, StepKind::Training);
  };
  EXPECT_TRUE(contains(complaints_without("update.expert#0", "download.expert#0"),
                       "update.expert#0 may start before download.expert#0 is over"));
  EXPECT_TRUE(contains(complaints_without("update.expert#2", "download.expert#2"),
                       "update.expert#2 may start before download.expert#2 is over"));
}

// Equal fractions of every rank's share, in steps of 64 elements.
TEST(OffloadedOptimizer, OfEveryBucketTheSameFractionIsOffloaded) {
  PlanCase c{.layers = "mm"};
  c.distributed = true;
  const RankPlan plan = offloading_plans(c, Copies::OneByOne, 640)[0];
  for (const BucketAnatomy& bucket : plan.anatomy.buckets) {
    const std::int64_t share = bucket.elements / bucket.shards;
    std::int64_t next = 0;
    for (const OffloadedAnatomy& one : plan.anatomy.offloaded) {
      if (one.part != bucket.part || one.bucket != bucket.number) continue;
      EXPECT_EQ(one.elements.begin, next);
      EXPECT_LE(one.elements.count, 640);
      next += one.elements.count;
    }
    EXPECT_GE(next, share / 2);
    EXPECT_LE(next, share / 2 + 64);
  }
}

}  // namespace offloaded_optimizer_test
}  // namespace weft::schedule
