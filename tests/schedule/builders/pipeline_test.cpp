#include "weft/schedule/builders/pipeline.h"

#include <gtest/gtest.h>

#include "tests/schedule/golden_support.h"
#include "tests/schedule/models_support.h"
#include "weft/base/text.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace pipeline_test {

TEST(Accumulation, OneRankIsAsInTheGoldenFile) {
  const Anatomy anatomy = describe(model_of("dm", 1), kAlone);
  EXPECT_TRUE(matches_golden("accumulation_one_rank.txt",
                             print(build_training(anatomy, {.micro_batches = 2}))));
}

TEST(Accumulation, ExpertParallelIsAsInTheGoldenFile) {
  const Anatomy anatomy =
      describe(model_of("dm", 2), {.dense = Sums::OverRanks, .totals = Sums::OverRanks});
  EXPECT_TRUE(
      matches_golden("accumulation_ep.txt", print(build_training(anatomy, {.micro_batches = 2}))));
}

TEST(Accumulation, DataParallelIsAsInTheGoldenFile) {
  const Anatomy anatomy = describe(model_of("dm", 1), kEverySum);
  EXPECT_TRUE(
      matches_golden("accumulation_dp.txt", print(build_training(anatomy, {.micro_batches = 2}))));
}

TEST(Accumulation, TiedExpertAndDataParallelIsAsInTheGoldenFile) {
  const Anatomy anatomy = describe(tied_model_of("dm", 2), kEverySum);
  EXPECT_TRUE(matches_golden("accumulation_ep_dp_tied.txt",
                             print(build_training(anatomy, {.micro_batches = 2}))));
}

TEST(Accumulation, ForwardOnlyIsAsInTheGoldenFile) {
  const Anatomy anatomy = describe(model_of("dm", 2), kEverySum);
  EXPECT_TRUE(
      matches_golden("forward_ep_dp.txt", print(build_forward(anatomy, {.micro_batches = 2}))));
}

TEST(Accumulation, EveryGraphVerifies) {
  for (const std::string layers : {"d", "m", "dd", "dm", "md", "mm", "dmd", "mmmm", "dmmdmm"}) {
    for (int choice = 0; choice < 32; ++choice) {
      const auto sums = [&](int bit) {
        return (choice >> bit & 1) == 0 ? Sums::None : Sums::OverRanks;
      };
      const std::int64_t ep = (choice & 8) == 0 ? 1 : 4;
      const config::ModelConfig model =
          (choice & 16) == 0 ? model_of(layers, ep) : tied_model_of(layers, ep);
      const Anatomy anatomy =
          describe(model, {.dense = sums(0), .expert = sums(1), .totals = sums(2)});
      for (const int micro_batches : {1, 2, 5}) {
        EXPECT_EQ(
            fmt::format("{}",
                        fmt::join(sentences(verify(
                                      build_training(anatomy, {.micro_batches = micro_batches}),
                                      anatomy,
                                      micro_batches,
                                      StepKind::Training)),
                                  "; ")),
            "")
            << layers << " " << choice << " " << micro_batches;
        EXPECT_EQ(verify(build_forward(anatomy, {.micro_batches = micro_batches}),
                         anatomy,
                         micro_batches,
                         StepKind::ForwardOnly)
                      .size(),
                  0u)
            << layers << " " << choice << " " << micro_batches;
      }
    }
  }
}

TEST(Accumulation, WhateverFollowsADFollowsItsW) {
  const Graph graph =
      build_training(describe(tied_model_of("dmm", 2), kEverySum), {.micro_batches = 2});
  const Reach reach(graph);
  int units = 0;
  for (std::size_t w = 0; w < graph.entries.size(); ++w) {
    Node node = graph.entries[w].node;
    if (node.direction != Direction::W || node.piece == Piece::Embed) continue;
    node.direction = Direction::D;
    const std::size_t d = find(graph, print(node));
    ++units;
    for (std::size_t i = 0; i < graph.entries.size(); ++i) {
      if (i == w || !reach.before(d, i)) continue;
      EXPECT_TRUE(reach.before(w, i)) << print(graph.entries[i].node) << " and " << print(node);
    }
  }
  EXPECT_EQ(units, 2 * (2 + 3 + 3 + 1));
}

TEST(Accumulation, OneLaneNeedsNoWaitsButTheHosts) {
  const Graph graph = build_training(describe(model_of("dm", 1), kAlone), {.micro_batches = 3});
  for (const Entry& entry : graph.entries) {
    if (entry.lane != Lane::Host) {
      EXPECT_TRUE(entry.waits.empty()) << print(entry.node);
    }
  }
}

}  // namespace pipeline_test
}  // namespace weft::schedule
