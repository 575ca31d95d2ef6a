#include "weft/trace/exposure/exposure.h"

#include <gtest/gtest.h>

#include "tests/trace/timeline_support.h"

namespace weft::trace {
namespace exposure_test {

constexpr double kNear = 1e-9;

// no partner, short cover, peer, host
void expect_reasons(const CommunicationTime& time,
                    double no_partner,
                    double short_cover,
                    double peer,
                    double host) {
  EXPECT_NEAR(time.reasons.no_partner_ms, no_partner, kNear);
  EXPECT_NEAR(time.reasons.short_cover_ms, short_cover, kNear);
  EXPECT_NEAR(time.reasons.peer_ms, peer, kNear);
  EXPECT_NEAR(time.reasons.host_ms, host, kNear);
  EXPECT_NEAR(time.exposed_ms, no_partner + short_cover + peer + host, kNear);
}

Exposure analyse_one(const Timeline& timeline) { return analyse(std::vector{timeline}); }

TEST(Exposure, HiddenIsUnderAnyComputeAndUnderGemms) {
  // dispatch 0..10; a GEMM 2..5, a copy 5..6, attention 8..12.
  const Exposure exposure =
      analyse_one(Hand(0)
                      .communication("ep", "0F0.dispatch", 0, 10, Cover::Possible)
                      .compute("0D1.experts", 2, 5)
                      .compute("0D1.permute", 5, 6, {}, SpanKind::Memory)
                      .compute("0D1.attention", 8, 12, {}, SpanKind::Attention));
  EXPECT_NEAR(exposure.total.communication_ms, 10, kNear);
  EXPECT_NEAR(exposure.total.hidden_any, 0.6, kNear);
  EXPECT_NEAR(exposure.total.hidden_gemm, 0.5, kNear);
  EXPECT_NEAR(exposure.total.exposed_ms, 4, kNear);
  ASSERT_EQ(exposure.step_ms.size(), 1u);
  EXPECT_NEAR(exposure.step_ms[0], 12, kNear);
  EXPECT_EQ(exposure.kinds.size(), 1u);
}

TEST(Exposure, IsOfUnionsAndNotOfSums) {
  // Two lanes at once, 0..10 and 5..15, under two overlapping operations, 0..4 and 2..6.
  const Exposure exposure = analyse_one(Hand(0)
                                            .communication("ep", "0F0.dispatch", 0, 10, Cover::None)
                                            .communication("dp", "reduce.dense", 5, 15, Cover::None)
                                            .node("compute", "0F1.experts", 0, 6)
                                            .operation(SpanKind::Gemm, 0, 4)
                                            .operation(SpanKind::Gemm, 2, 6));
  EXPECT_NEAR(exposure.kinds.at("ep").communication_ms, 10, kNear);
  EXPECT_NEAR(exposure.kinds.at("ep").exposed_ms, 4, kNear);
  EXPECT_NEAR(exposure.kinds.at("dp").communication_ms, 10, kNear);
  EXPECT_NEAR(exposure.kinds.at("dp").exposed_ms, 9, kNear);
  EXPECT_NEAR(exposure.kinds.at("dp").hidden_gemm, 0.1, kNear);
  EXPECT_NEAR(exposure.total.communication_ms, 15, kNear);
  EXPECT_NEAR(exposure.total.exposed_ms, 9, kNear);
  EXPECT_NEAR(exposure.total.hidden_any, 0.4, kNear);
}

TEST(Exposure, PipelineLanesAreOneKindHostNoneAndCopiesOneOutsideOfTheTotal) {
  const Exposure exposure =
      analyse_one(Hand(0)
                      .communication("pp_send_next", "c0F0.send", 0, 2, Cover::None)
                      .communication("pp_receive_next", "c0D0.receive", 1, 4, Cover::None)
                      .node("host", "0F0.sizes", 0, 9)
                      .node("copy", "0O0.attention.core", 0, 9));
  ASSERT_EQ(exposure.kinds.size(), 2u);
  EXPECT_NEAR(exposure.kinds.at("copy").communication_ms, 9, kNear);
  EXPECT_NEAR(exposure.kinds.at("pp").communication_ms, 4, kNear);
  EXPECT_NEAR(exposure.total.communication_ms, 4, kNear);
}

TEST(Exposure, NoPartnerWhereTheOrderLetsNothingRunBeside) {
  const Exposure exposure = analyse_one(Hand(0)
                                            .compute("0F0.permute", 0, 1)
                                            .communication("ep", "0F0.dispatch", 1, 4, Cover::None)
                                            .compute("0F0.experts", 4, 5, {"0F0.dispatch"}));
  expect_reasons(exposure.total, 3, 0, 0, 0);
}

TEST(Exposure, ShortCoverWhereComputeMayRunBesideButIsOver) {
  const Exposure exposure =
      analyse_one(Hand(0)
                      .compute("0D1.experts", 0, 3)
                      .communication("ep", "0F0.dispatch", 1, 5, Cover::Possible)
                      .compute("0F0.experts", 5, 6, {"0F0.dispatch"}));
  expect_reasons(exposure.total, 0, 2, 0, 0);
  EXPECT_NEAR(exposure.total.hidden_any, 0.5, kNear);
}

TEST(Exposure, HostWhereTheNextNodeIsReadyAndHasNotBegun) {
  // 0D1.experts needs the combine, which ends at 2, and starts at 5: three of the dispatch's four
  // are late issue.
  const Exposure exposure =
      analyse_one(Hand(0)
                      .compute("0F0.permute", 0, 1)
                      .communication("ep", "0D1.combine", 0, 2, Cover::Possible)
                      .communication("ep", "0F0.dispatch", 2, 6, Cover::Possible)
                      .compute("0D1.experts", 5, 7, {"0D1.combine"}));
  expect_reasons(exposure.total, 0, 1, 0, 3);
}

TEST(Exposure, HostBetweenTheOperationsOfANode) {
  const Exposure exposure =
      analyse_one(Hand(0)
                      .communication("ep", "0F0.dispatch", 0, 10, Cover::Possible)
                      .node("compute", "0D1.experts", 0, 10)
                      .operation(SpanKind::Gemm, 0, 4)
                      .operation(SpanKind::Gemm, 7, 10));
  expect_reasons(exposure.total, 0, 0, 0, 3);
}

TEST(Exposure, ANodeBehindTheHostWaitsForWhatTheHostWaitsFor) {
  // The host waits for the counts, which end at 2, and returns at 3; the permutation starts at 4.
  const Exposure exposure = analyse_one(Hand(0)
                                            .communication("ep", "0F0.counts", 0, 2, Cover::None)
                                            .communication("dp", "reduce.dense", 0, 10, Cover::None)
                                            .node("host", "0F0.sizes", 0, 3, {"0F0.counts"})
                                            .compute("0F0.permute", 4, 10, {"0F0.sizes"}));
  expect_reasons(exposure.kinds.at("ep"), 2, 0, 0, 0);
  expect_reasons(exposure.kinds.at("dp"), 2, 0, 0, 2);
}

TEST(Exposure, PeerUntilTheLastMemberBegins) {
  const std::vector<Timeline> timelines{
      Hand(0).communication("ep", "0F0.dispatch", 0, 6, Cover::None, {0, 1}),
      Hand(1)
          .compute("0F0.permute", 0, 4)
          .communication("ep", "0F0.dispatch", 4, 6, Cover::None, {0, 1}),
      // An operation of that name in another group has its own beginning.
      Hand(2).communication("ep", "0F0.dispatch", 0, 6, Cover::None, {2, 3}),
      Hand(3).communication("ep", "0F0.dispatch", 5, 6, Cover::None, {2, 3})};
  const Exposure exposure = analyse(timelines);
  ASSERT_EQ(exposure.ranks.size(), 4u);
  expect_reasons(exposure.ranks[0].total, 2, 0, 4, 0);
  expect_reasons(exposure.ranks[1].total, 2, 0, 0, 0);
  expect_reasons(exposure.ranks[2].total, 1, 0, 5, 0);
  expect_reasons(exposure.ranks[3].total, 1, 0, 0, 0);
  expect_reasons(exposure.total, 1.5, 0, 2.25, 0);
  EXPECT_NEAR(exposure.total.communication_ms, 15.0 / 4, kNear);
}

TEST(Exposure, AReceiveWaitsForItsSend) {
  Hand receiver(1);
  receiver.communication("pp_receive_previous", "c1F0.receive", 0, 5, Cover::None, {0, 1});
  receiver.last().operation = "c0F0.send";
  const std::vector<Timeline> timelines{
      Hand(0).communication("pp_send_next", "c0F0.send", 3, 5, Cover::None, {0, 1}),
      receiver};
  const Exposure exposure = analyse(timelines);
  expect_reasons(exposure.ranks[0].total, 2, 0, 0, 0);
  expect_reasons(exposure.ranks[1].total, 2, 0, 3, 0);
}

TEST(Exposure, SeparateClocksCompareDurations) {
  // Rank 1's clock is far ahead; its operation lasted 2, rank 0's 6.
  const std::vector<Timeline> timelines{
      Hand(0).communication("ep", "0F0.dispatch", 0, 6, Cover::None, {0, 1}),
      Hand(1).communication("ep", "0F0.dispatch", 1004, 1006, Cover::None, {0, 1})};
  const Exposure exposure = analyse(timelines, Clocks::Separate);
  expect_reasons(exposure.ranks[0].total, 2, 0, 4, 0);
  expect_reasons(exposure.ranks[1].total, 2, 0, 0, 0);
  EXPECT_NEAR(exposure.step_ms.at(0), 6, kNear);
}

TEST(Exposure, WhoeverDoesNotWaitDecidesWhereSeveralCommunicate) {
  // Rank 0 waits for rank 1 in the receive until 8; its own coverable dispatch runs 2..4.
  Hand receiver(0);
  receiver.communication("ep", "0F0.dispatch", 2, 4, Cover::Possible)
      .communication("pp_receive_next", "c0D0.receive", 0, 10, Cover::None, {0, 1});
  receiver.last().operation = "c1D0.send";
  const std::vector<Timeline> timelines{
      receiver,
      Hand(1).communication("pp_send_previous", "c1D0.send", 8, 10, Cover::None, {0, 1})};
  const Exposure exposure = analyse(timelines);
  expect_reasons(exposure.ranks[0].kinds.at("pp"), 2, 0, 8, 0);
  expect_reasons(exposure.ranks[0].kinds.at("ep"), 0, 2, 0, 0);
  expect_reasons(exposure.ranks[0].total, 2, 2, 6, 0);
}

TEST(Exposure, IsTheMeanOverRuns) {
  const Exposure exposure =
      analyse_one(Hand(0)
                      .communication("ep", "0F0.dispatch", 0, 4, Cover::None)
                      .run(1)
                      .compute("0F0.embed", 10, 12)
                      .communication("ep", "0F0.dispatch", 12, 14, Cover::None)
                      .compute("0F0.experts", 13, 16));
  EXPECT_EQ(exposure.step_ms.size(), 2u);
  EXPECT_NEAR(exposure.step_ms.at(0), 4, kNear);
  EXPECT_NEAR(exposure.step_ms.at(1), 6, kNear);
  EXPECT_NEAR(exposure.mean_step_ms(), 5, kNear);
  EXPECT_NEAR(exposure.total.communication_ms, 3, kNear);
  EXPECT_NEAR(exposure.total.exposed_ms, 2.5, kNear);
  EXPECT_NEAR(exposure.total.hidden_any, 1.0 / 6, kNear);
}

TEST(Exposure, OperationsOfDifferentRunsDoNotMeet) {
  const std::vector<Timeline> timelines{
      Hand(0).communication("ep", "0F0.dispatch", 0, 2, Cover::None, {0, 1}),
      Hand(1).run(1).communication("ep", "0F0.dispatch", 90, 92, Cover::None, {0, 1})};
  EXPECT_NEAR(analyse(timelines).total.reasons.peer_ms, 0, kNear);
}

TEST(Exposure, NothingToCommunicateIsNothingExposed) {
  for (const Exposure& exposure : {analyse({}), analyse_one(Hand(0).compute("0F0.mlp", 0, 3))}) {
    EXPECT_TRUE(exposure.kinds.empty());
    EXPECT_EQ(exposure.total.communication_ms, 0);
    EXPECT_EQ(exposure.total.hidden_any, 0);
    EXPECT_EQ(exposure.total.exposed_ms, 0);
  }
}

TEST(Exposure, JsonAndTableSayWhatTheNumbersAre) {
  const Exposure exposure =
      analyse_one(Hand(3)
                      .compute("0D1.experts", 0, 3)
                      .communication("ep", "0F0.dispatch", 1, 5, Cover::Possible));
  const base::Json json = to_json(exposure);
  EXPECT_EQ(json.at("step_ms").size(), 1u);
  EXPECT_NEAR(json.at("total").at("hidden_any").get<double>(), 0.5, kNear);
  EXPECT_NEAR(json.at("kinds").at("ep").at("reasons").at("short_cover_ms").get<double>(), 2, kNear);
  EXPECT_EQ(json.at("ranks").at(0).at("rank"), 3);
  EXPECT_EQ(json.at("ranks").at(0).at("label"), "[R3]");
  const std::string table = to_table(exposure);
  EXPECT_NE(table.find("\nep          4.000       50.0%"), std::string::npos) << table;
  EXPECT_NE(table.find("\ntotal       4.000"), std::string::npos) << table;
}

}  // namespace exposure_test
}  // namespace weft::trace
