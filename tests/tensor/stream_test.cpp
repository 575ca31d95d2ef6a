#include "weft/tensor/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "weft/base/error.h"
#include "weft/tensor/workers.h"

namespace weft::tensor {
namespace stream_test {

using std::chrono::milliseconds;

constexpr auto kMemory = WorkClass::Memory;

TEST(Stream, WorkRunsInOrder) {
  const auto stream = make_cpu_stream("s", 1, StreamMode::Threaded);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i)
    stream->enqueue("x", kMemory, [&, i](Workers&) { order.push_back(i); });
  stream->synchronize();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Stream, AnEventOrdersTwoStreams) {
  const auto a = make_cpu_stream("a", 1, StreamMode::Threaded);
  const auto b = make_cpu_stream("b", 1, StreamMode::Threaded);
  int value = 0;
  a->enqueue("slow", kMemory, [&](Workers&) {
    std::this_thread::sleep_for(milliseconds(20));
    value = 1;
  });
  b->wait(a->record());
  int seen = -1;
  b->enqueue("read", kMemory, [&](Workers&) { seen = value; });
  b->synchronize();
  EXPECT_EQ(seen, 1);
}

TEST(Stream, WaitsWithoutWorkStillOrderWhoFollows) {
  const auto a = make_cpu_stream("a", 1, StreamMode::Threaded);
  const auto b = make_cpu_stream("b", 1, StreamMode::Threaded);
  const auto c = make_cpu_stream("c", 1, StreamMode::Threaded);
  std::atomic<int> value = 0;
  a->enqueue("slow", kMemory, [&](Workers&) {
    std::this_thread::sleep_for(milliseconds(20));
    value = 1;
  });
  b->wait(a->record());
  c->wait(b->record());
  int seen = -1;
  c->enqueue("read", kMemory, [&](Workers&) { seen = value; });
  c->synchronize();
  EXPECT_EQ(seen, 1);
}

TEST(Stream, KeepsItsFirstErrorWithTheNodesName) {
  const auto a = make_cpu_stream("a", 1, StreamMode::Threaded);
  const auto b = make_cpu_stream("b", 1, StreamMode::Threaded);
  a->set_label("3F7.dispatch");
  a->enqueue("boom", kMemory, [](Workers&) { throw base::SystemError("link down"); });
  bool ran = false;
  a->enqueue("after", kMemory, [&](Workers&) { ran = true; });
  b->wait(a->record());
  b->enqueue("other", kMemory, [&](Workers&) { ran = true; });
  try {
    b->synchronize();
    FAIL() << "the error did not reach the waiting stream";
  } catch (const base::SystemError& error) {
    EXPECT_STREQ(error.what(), "3F7.dispatch (boom): link down");
  }
  EXPECT_FALSE(ran);
  EXPECT_THROW(a->synchronize(), base::SystemError);
}

TEST(Stream, InlineRunsInsideEnqueueAndThrowsThere) {
  const auto stream = make_cpu_stream("s", 1, StreamMode::Inline);
  int value = 0;
  stream->enqueue("x", kMemory, [&](Workers&) { value = 1; });
  EXPECT_EQ(value, 1);
  EXPECT_THROW(stream->enqueue("x", kMemory, [](Workers&) { throw base::SystemError("no"); }),
               base::SystemError);
}

TEST(Stream, RecordsSpansWithLabelAndClass) {
  const auto stream = make_cpu_stream("s", 1, StreamMode::Threaded);
  stream->start_recording();
  stream->set_label("0F0.attention");
  stream->enqueue("gemm", WorkClass::Gemm, [](Workers&) {
    std::this_thread::sleep_for(milliseconds(2));
  });
  stream->synchronize();
  const auto spans = stream->take_recording();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].label, "0F0.attention");
  EXPECT_EQ(spans[0].kind, WorkClass::Gemm);
  EXPECT_GE(spans[0].end_ns - spans[0].begin_ns, 2'000'000);
}

TEST(Workers, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> times(37);
      workers.parallel(37, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
      for (const auto& n : times) EXPECT_EQ(n, 1);
    }
  }
}

TEST(Workers, AnExceptionReachesTheCaller) {
  Workers workers(2);
  EXPECT_THROW(workers.parallel(8,
                                [](std::int64_t i) {
                                  if (i == 5) throw base::SystemError("x");
                                }),
               base::SystemError);
  workers.parallel(8, [](std::int64_t) {});
}

}  // namespace stream_test
}  // namespace weft::tensor
