// Random timelines, nanoseconds long: compares the analysis with a count of every nanosecond.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "weft/trace/exposure/exposure.h"
#include "weft/trace/exposure/intervals.h"

namespace weft::trace {
namespace exposure_property_test {

constexpr std::int64_t kLength = 120;

struct Counts {
  int communication = 0, any = 0, gemm = 0, exposed = 0;
  int no_partner = 0, short_cover = 0, peer = 0, host = 0;
};

std::int64_t below(std::mt19937& random, unsigned limit) {
  return static_cast<std::int64_t>(random() % limit);
}

Span span_of(SpanKind kind, const std::string& lane, const std::string& name, Interval time) {
  return {.name = name,
          .node = name,
          .lane = lane,
          .kind = kind,
          .begin_ns = time.begin,
          .end_ns = time.end};
}

// Nodes of a lane in sequence, with and without gaps.
std::vector<Interval> random_lane(std::mt19937& random) {
  std::vector<Interval> times;
  std::int64_t now = below(random, 10);
  while (true) {
    const std::int64_t end = now + below(random, 20);
    if (end > kLength) return times;
    times.push_back({now, end});
    now = end + (random() % 3 == 0 ? 0 : below(random, 15));
  }
}

void add_compute(std::mt19937& random, Timeline& timeline) {
  int i = 0;
  for (const Interval& time : random_lane(random)) {
    Span node = span_of(SpanKind::Node, "compute", "n" + std::to_string(i++), time);
    for (int lane = 0; lane < 2; ++lane) {
      if (random() % 2 == 0) {
        node.after.push_back((lane == 0 ? "e" : "d") + std::to_string(random() % 6));
      }
    }
    timeline.spans.push_back(node);
    for (std::int64_t begin = time.begin; begin < time.end;) {
      const std::int64_t end = std::min<std::int64_t>(time.end, begin + 1 + below(random, 8));
      const std::array kinds{SpanKind::Gemm, SpanKind::Memory, SpanKind::Attention, SpanKind::Copy};
      timeline.spans.push_back(span_of(kinds[random() % 4], "compute", "op", {begin, end}));
      begin = end + below(random, 3);
    }
  }
}

std::vector<Timeline> random_ranks(std::mt19937& random) {
  std::vector<Timeline> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Timeline& timeline = ranks.emplace_back(Timeline{.rank = rank, .label = "", .spans = {}});
    for (const char* lane : {"ep", "dp"}) {
      int i = 0;
      for (const Interval& time : random_lane(random)) {
        Span span = span_of(SpanKind::Node, lane, lane[0] + std::to_string(i++), time);
        span.coverable = random() % 2 == 0;
        span.operation = span.name;
        span.members = {0, 1};
        timeline.spans.push_back(span);
      }
    }
    add_compute(random, timeline);
    std::ranges::shuffle(timeline.spans, random);
  }
  return ranks;
}

bool covers(const Span& span, std::int64_t t) { return span.begin_ns <= t && t < span.end_ns; }

const Span* find_node(const Timeline& timeline, const std::string& name) {
  for (const Span& span : timeline.spans) {
    if (is_node(span) && span.name == name) return &span;
  }
  return nullptr;
}

std::int64_t last_begin(const std::vector<Timeline>& ranks, const Span& node) {
  std::int64_t last = node.begin_ns;
  for (const Timeline& timeline : ranks) {
    const Span* peer = find_node(timeline, node.name);
    if (peer != nullptr) last = std::max(last, peer->begin_ns);
  }
  return last;
}

// The definition: the next incomplete compute node has all that it waits for.
bool is_host(const Timeline& timeline, std::int64_t t) {
  const Span* next = nullptr;
  for (const Span& span : timeline.spans) {
    if (span.lane != "compute" || !is_node(span) || span.end_ns <= t) continue;
    // Lane order; of two that begin together, the empty one was first.
    const auto order = [](const Span& one) { return std::pair(one.begin_ns, one.end_ns); };
    if (next == nullptr || order(span) < order(*next)) next = &span;
  }
  if (next == nullptr) return false;
  if (next->begin_ns <= t) return true;
  return std::ranges::all_of(next->after, [&](const std::string& name) {
    const Span* awaited = find_node(timeline, name);
    // A random wait may end after the node began: the node cannot have waited then.
    return awaited == nullptr || std::min(awaited->end_ns, next->begin_ns) <= t;
  });
}

Counts count(const std::vector<Timeline>& ranks, const Timeline& timeline, std::string_view kind) {
  Counts counts;
  for (std::int64_t t = 0; t < kLength; ++t) {
    bool communicates = false, all_wait = true, coverable = false, any = false, gemm = false;
    for (const Span& span : timeline.spans) {
      if (!covers(span, t)) continue;
      if (span.lane == "compute" && !is_node(span)) {
        any = true;
        gemm = gemm || span.kind == SpanKind::Gemm || span.kind == SpanKind::Attention;
      }
      if (span.lane == "compute" || (!kind.empty() && span.lane != kind)) continue;
      communicates = true;
      if (t < last_begin(ranks, span)) continue;
      all_wait = false;
      coverable = coverable || span.coverable;
    }
    if (!communicates) continue;
    ++counts.communication;
    counts.any += any ? 1 : 0;
    counts.gemm += gemm ? 1 : 0;
    if (any) continue;
    ++counts.exposed;
    ++(all_wait               ? counts.peer
       : is_host(timeline, t) ? counts.host
       : coverable            ? counts.short_cover
                              : counts.no_partner);
  }
  return counts;
}

void expect_equal(const CommunicationTime& time, const Counts& counts) {
  constexpr double kNs = 1e6;
  EXPECT_NEAR(time.communication_ms * kNs, counts.communication, 1e-6);
  EXPECT_NEAR(time.hidden_any * counts.communication, counts.any, 1e-6);
  EXPECT_NEAR(time.hidden_gemm * counts.communication, counts.gemm, 1e-6);
  EXPECT_NEAR(time.exposed_ms * kNs, counts.exposed, 1e-6);
  EXPECT_NEAR(time.reasons.no_partner_ms * kNs, counts.no_partner, 1e-6);
  EXPECT_NEAR(time.reasons.short_cover_ms * kNs, counts.short_cover, 1e-6);
  EXPECT_NEAR(time.reasons.peer_ms * kNs, counts.peer, 1e-6);
  EXPECT_NEAR(time.reasons.host_ms * kNs, counts.host, 1e-6);
}

TEST(ExposureProperty, EqualsTheCountOfEveryNanosecond) {
  std::mt19937 random(11);
  Counts seen;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const std::vector<Timeline> ranks = random_ranks(random);
    const Exposure exposure = analyse(ranks);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Counts total = count(ranks, ranks[rank], "");
      expect_equal(exposure.ranks[rank].total, total);
      for (const auto& [kind, time] : exposure.ranks[rank].kinds) {
        expect_equal(time, count(ranks, ranks[rank], kind));
      }
      seen.no_partner += total.no_partner;
      seen.short_cover += total.short_cover;
      seen.peer += total.peer;
      seen.host += total.host;
    }
    if (HasFailure()) return;
  }
  for (const int reason : {seen.no_partner, seen.short_cover, seen.peer, seen.host}) {
    EXPECT_GT(reason, 500) << "the random timelines leave a reason out";
  }
}

Intervals random_intervals(std::mt19937& random) {
  Intervals some;
  for (unsigned i = random() % 12; i > 0; --i) {
    const std::int64_t begin = below(random, 50);
    some.push_back({begin, begin + below(random, 8)});
  }
  return some;
}

bool holds(const Intervals& set, std::int64_t t) {
  return std::ranges::any_of(set, [&](const Interval& i) { return i.begin <= t && t < i.end; });
}

TEST(ExposureProperty, SetsOfTimeHoldWhatTheyShould) {
  std::mt19937 random(12);
  for (int round = 0; round < 500; ++round) {
    const Intervals a = random_intervals(random), b = random_intervals(random);
    const Intervals left = subtract(unite(a), unite(b));
    std::int64_t in_a = 0, in_left = 0;
    for (std::int64_t t = 0; t < 60; ++t) {
      ASSERT_EQ(holds(unite(a), t), holds(a, t));
      ASSERT_EQ(holds(left, t), holds(a, t) && !holds(b, t));
      in_a += holds(a, t) ? 1 : 0;
      in_left += holds(left, t) ? 1 : 0;
    }
    ASSERT_EQ(length(unite(a)), in_a);
    ASSERT_EQ(length(left), in_left);
  }
}

}  // namespace exposure_property_test
}  // namespace weft::trace
