#include "weft/tensor/stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/devices/devices_support.h"
#include "weft/base/error.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/transfer.h"
#include "weft/tensor/transfers.h"

namespace weft::tensor {
namespace stream_test {

using std::chrono::milliseconds;

constexpr auto kMemory = WorkClass::Memory;

class Streams : public testing::TestWithParam<devices::DeviceKind> {
 protected:
  std::unique_ptr<Stream> make(const std::string& name) {
    return device_->make_stream(name, StreamRole::Compute);
  }

  const std::unique_ptr<Device> device_ = devices::make_device(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Devices,
                         Streams,
                         testing::ValuesIn(devices::kDevices),
                         [](const auto& test) { return devices::name_of(test.param); });

TEST_P(Streams, WorkRunsInOrder) {
  const auto stream = make("s");
  std::vector<int> order;
  for (int i = 0; i < 100; ++i)
    stream->enqueue_host("x", kMemory, [&, i](Transfers&) { order.push_back(i); });
  stream->synchronize();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(Streams, AnEventOrdersTwoStreams) {
  const auto a = make("a"), b = make("b");
  int value = 0;
  a->enqueue_host("slow", kMemory, [&](Transfers&) {
    std::this_thread::sleep_for(milliseconds(20));
    value = 1;
  });
  b->wait(a->record());
  int seen = -1;
  b->enqueue_host("read", kMemory, [&](Transfers&) { seen = value; });
  b->synchronize();
  EXPECT_EQ(seen, 1);
}

TEST_P(Streams, WaitsWithoutWorkStillOrderWhoFollows) {
  const auto a = make("a"), b = make("b"), c = make("c");
  std::atomic<int> value = 0;
  a->enqueue_host("slow", kMemory, [&](Transfers&) {
    std::this_thread::sleep_for(milliseconds(20));
    value = 1;
  });
  b->wait(a->record());
  c->wait(b->record());
  int seen = -1;
  c->enqueue_host("read", kMemory, [&](Transfers&) { seen = value; });
  c->synchronize();
  EXPECT_EQ(seen, 1);
}

TEST_P(Streams, KnowWhatTheyWereToldToWaitForAndWhatTheHostWaitedFor) {
  const auto a = make("a"), b = make("b");
  a->enqueue_host("x", kMemory, [](Transfers&) {});
  const Event first = a->record();
  EXPECT_TRUE(a->knows(first));
  EXPECT_FALSE(b->knows(first));
  b->wait(first);
  EXPECT_TRUE(b->knows(first));
  a->enqueue_host("y", kMemory, [](Transfers&) {});
  const Event second = a->record();
  EXPECT_FALSE(b->knows(second));
  a->host_wait(second);
  EXPECT_TRUE(a->host_knows(second.ticket));
  EXPECT_TRUE(b->knows(second));
}

TEST_P(Streams, KeepTheirFirstErrorWithTheNodesName) {
  const auto a = make("a"), b = make("b");
  a->set_label("3F7.dispatch");
  a->enqueue_host("boom", kMemory, [](Transfers&) { throw base::SystemError("link down"); });
  bool ran = false;
  a->enqueue_host("after", kMemory, [&](Transfers&) { ran = true; });
  b->wait(a->record());
  b->enqueue_host("other", kMemory, [&](Transfers&) { ran = true; });
  try {
    b->synchronize();
    FAIL() << "the error did not reach the waiting stream";
  } catch (const base::SystemError& error) {
    EXPECT_STREQ(error.what(), "3F7.dispatch (boom): link down");
  }
  EXPECT_FALSE(ran);
  EXPECT_THROW(a->synchronize(), base::SystemError);
}

TEST_P(Streams, AFaultOfAnOperationIsAnErrorWithTheNodesName) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor table(pool, DType::F32, {3, 2}, Tag::Workspace);
  const Tensor x(pool, DType::F32, {1, 2}, Tag::Workspace);
  const Tensor ids(pool, DType::I32, {1}, Tag::Workspace);
  write<std::int32_t>(*stream, ids, std::vector<std::int32_t>{3});
  stream->set_label("F2.embed");
  kernels::embedding_forward(*stream, x, table, ids);
  bool ran = false;
  stream->set_label("0F2.attention");
  stream->enqueue_host("after", kMemory, [&](Transfers&) { ran = true; });
  for (int again = 0; again < 2; ++again) {
    try {
      stream->synchronize();
      FAIL() << "nobody heard of the fault";
    } catch (const base::InternalError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("F2.embed (embedding_forward): ")) << text;
      EXPECT_TRUE(text.ends_with("token 3 of a vocabulary of 3")) << text;
    }
  }
  EXPECT_FALSE(ran);
}

TEST_P(Streams, ValuesComeBackAsTheyWentUp) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor x(pool, DType::F32, {2, 3}, Tag::Workspace);
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  upload<float>(*stream, x, values);
  EXPECT_EQ(read<float>(*stream, x), values);
  EXPECT_EQ(read<float>(*stream, x.rows(1, 1)), (std::vector<float>{4, 5, 6}));
  EXPECT_THROW(upload<float>(*stream, x.rows(0, 1), values), base::InternalError);
  EXPECT_THROW(read<float>(*stream, x.columns(0, 2)), base::InternalError);
  EXPECT_THROW(read<double>(*stream, x), base::InternalError);
  const Tensor half(pool, DType::BF16, {3}, Tag::Workspace);
  write_floats(*stream, half, std::vector<float>{1, 1.00390625f, -2});
  EXPECT_EQ(read_floats(*stream, half), (std::vector<float>{1, 1, -2}));
}

TEST_P(Streams, WorkOfTheHostReachesDeviceMemoryThroughTransfers) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor a(pool, DType::F32, {2}, Tag::Workspace), b(pool, DType::F32, {2}, Tag::Workspace);
  write<float>(*stream, a, std::vector<float>{1, 2});
  write<float>(*stream, b, std::vector<float>{10, 20});
  std::byte *to = a.raw(*stream), *from = b.raw(*stream);
  float seen = 0;
  stream->enqueue_host("meet", WorkClass::Communication, [&, to, from](Transfers& transfers) {
    const std::shared_ptr<std::byte> scratch = transfers.scratch(8);
    transfers.copy(scratch.get(), from, 8);
    const std::byte* sources[]{to, scratch.get()};
    transfers.reduce(DType::F32, Reduce::Sum, to, sources, 2);
    transfers.copy(reinterpret_cast<std::byte*>(&seen), to + 4, 4);
    transfers.clear(from, 4);
  });
  EXPECT_EQ(read<float>(*stream, a), (std::vector<float>{11, 22}));
  EXPECT_EQ(read<float>(*stream, b), (std::vector<float>{0, 20}));
  EXPECT_EQ(seen, 22);
}

TEST_P(Streams, AloneWorkRunsInsideTheCallAndThrowsThere) {
  const auto stream = device_->make_stream("s", StreamRole::Alone);
  int value = 0;
  stream->enqueue_host("x", kMemory, [&](Transfers&) { value = 1; });
  EXPECT_EQ(value, 1);
  EXPECT_THROW(
      stream->enqueue_host("x", kMemory, [](Transfers&) { throw base::SystemError("no"); }),
      base::SystemError);
}

TEST_P(Streams, RecordSpansWithLabelAndClass) {
  const auto stream = make("s");
  stream->start_recording();
  stream->set_label("0F0.attention");
  stream->enqueue_host("gemm", WorkClass::Gemm, [](Transfers&) {
    std::this_thread::sleep_for(milliseconds(2));
  });
  stream->synchronize();
  const auto spans = stream->take_recording();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].label, "0F0.attention");
  EXPECT_EQ(spans[0].kind, WorkClass::Gemm);
  EXPECT_GE(spans[0].end_ns - spans[0].begin_ns, 2'000'000);
}

}  // namespace stream_test
}  // namespace weft::tensor
