// Evidence of overlap: communication ran during compute, and hidden milliseconds are saved.
#include "weft/measure/bench/overlap_bench.h"

#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/plan/price/overlap_prediction.h"

namespace weft::measure {

using namespace train;
namespace overlap_bench_test {

using trace::Span;
using trace::SpanKind;

config::Config bench_config() {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.num_layers = 2;
  config.model.moe_layer_freq = {1};
  config.model.hidden_size = 128;
  config.model.kv_channels = 32;
  config.model.num_attention_heads = 4;
  config.model.num_query_groups.reset();
  config.model.seq_length = 128;
  config.model.moe_ffn_hidden_size = 128;
  config.train.micro_batch_size = 1;
  config.runtime.pin_ranks = base::online_cores() >= 2;
  config.train.global_batch_size = kSanitized ? 2 * 3 : 2 * 6;
  return config;
}

OverlapBench run(const config::Config& config) {
  return bench_overlap({.orders = overlap_orders(config),
                        .targets = {{"free", 0}, {"slow", 1.0}},
                        .rounds = kSanitized ? 1 : 5,
                        .progress = [](int, int) {}});
}

bool is_transfer(const Span& span) {
  return span.kind == SpanKind::Node &&
         (span.name.ends_with(".dispatch") || span.name.ends_with(".combine"));
}

// Number of coverable dispatches and combines, and of those with compute beside them.
struct Tally {
  int transfers = 0, covered = 0;
};

Tally tally(const OverlapRun& run) {
  Tally sum;
  for (const trace::Timeline& timeline : run.timelines) {
    for (const Span& transfer : timeline.spans) {
      if (!is_transfer(transfer) || !transfer.coverable) continue;
      ++sum.transfers;
      sum.covered += std::ranges::any_of(timeline.spans, [&](const Span& span) {
        return span.run == transfer.run && !trace::is_node(span) &&
               span.lane == trace::kComputeLane && span.begin_ns < transfer.end_ns &&
               transfer.begin_ns < span.end_ns;
      });
    }
  }
  return sum;
}

double hidden_ms(const trace::Exposure& exposure) {
  return exposure.total.communication_ms * exposure.total.hidden_any;
}

class Overlap : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { measure(); }
  static void TearDownTestSuite() { bench_.reset(); }
  static void measure() { bench_ = std::make_unique<OverlapBench>(run(bench_config())); }
  // True if the fact holds for the measurement or for a repeated one: other programs may disturb
  // some steps.
  template <typename Fact>
  static bool holds(const Fact& fact) {
    for (int again = 0; again < 3 && !fact(); ++again) measure();
    return fact();
  }
  static const FabricRuns& slow() { return bench_->fabrics[1]; }
  static std::unique_ptr<OverlapBench> bench_;
};
std::unique_ptr<OverlapBench> Overlap::bench_;

TEST_F(Overlap, DispatchAndCombineRanWhileComputeRan) {
  EXPECT_EQ(tally(slow().runs[0]).transfers, 0) << "the plain order has nothing to cover with";
  for (const std::size_t order : {1u, 2u}) {
    const Tally found = tally(slow().runs[order]);
    EXPECT_GT(found.transfers, kSanitized ? 10 : 50);
    EXPECT_GT(found.covered, kSanitized ? 0 : found.transfers / 2) << slow().runs[order].name;
  }
}

// On a shared core spans can overlap without any gain: hidden time must be missing from the step.
TEST_F(Overlap, MillisecondsHiddenAreMillisecondsSaved) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes turns of its own";
  std::string seen;
  EXPECT_TRUE(holds([&] {
    const double plain_hidden = hidden_ms(trace::analyse(slow().runs[0].timelines));
    return std::ranges::all_of(std::array{1u, 2u}, [&](std::size_t order) {
      const OverlapRun& overlapped = slow().runs[order];
      const double hidden = hidden_ms(trace::analyse(overlapped.timelines)) - plain_hidden;
      const double saved = (slow().runs[0].step_seconds() - overlapped.step_seconds()) * 1e3;
      seen += base::text("{}: {:.1f} ms hidden, {:.1f} saved\n", overlapped.name, hidden, saved);
      return hidden > 0 && saved > 0.5 * hidden && saved < 2.0 * hidden;
    });
  })) << seen;
}

TEST_F(Overlap, CommunicationAloneIsWhatTheTargetAsks) {
  if (kSanitized) GTEST_SKIP() << "too few steps to set a bandwidth by";
  EXPECT_TRUE(bench_->fabrics[0].fabric->is_free());
  std::string seen;
  EXPECT_TRUE(holds([&] {
    const plan::OverlapPrediction prediction(overlap_orders(bench_config()).front().config,
                                             slow().fabric,
                                             slow().runs[0].timelines,
                                             slow().runs[0].step_seconds());
    const double ratio = prediction.communication_seconds() / *bench_->compute_seconds;
    seen += base::text("communication {:.2f} times compute\n", ratio);
    return ratio > 0.5 && ratio < 2.0;
  })) << seen;
}

TEST_F(Overlap, TimelinesAreOfEveryRankAndRun) {
  for (const FabricRuns& fabric : bench_->fabrics) {
    for (const OverlapRun& order : fabric.runs) {
      ASSERT_EQ(order.timelines.size(), 2u);
      EXPECT_GT(order.peak_activation_bytes, 0);
      for (const trace::Timeline& timeline : order.timelines) {
        EXPECT_EQ(timeline.spans.back().run, 1) << "two traced steps";
      }
    }
  }
}

// The rules refuse overlap without communication; the plain order alone passes them.
TEST(OverlapAlone, RefusesLayersThatCommunicateNothing) {
  config::Config config = bench_config();
  config.model.expert_model_parallel_size = 1;
  config.runtime.backend = config::CommBackend::Loopback;
  try {
    bench_overlap({.orders = {{.name = "plain", .config = judged(config), .warnings = {}}},
                   .targets = {{"free", 0}, {"slow", 1.0}},
                   .rounds = 1,
                   .progress = [](int, int) {}});
    FAIL() << "no error";
  } catch (const base::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("nothing to overlap"), std::string::npos)
        << error.what();
  }
}

}  // namespace overlap_bench_test
}  // namespace weft::measure
