#include "weft/tensor/stream.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
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
                         testing::ValuesIn(devices::all_devices()),
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

TEST_P(Streams, KnowWhatThoseHadWaitedForThatTheyWaitFor) {
  const auto a = make("a"), b = make("b"), c = make("c");
  const auto work = [](Stream& stream) { stream.enqueue_host("x", kMemory, [](Transfers&) {}); };
  work(*a);
  const Event first = a->record();
  work(*b);
  const Event before = b->record();
  b->wait(first);
  work(*b);
  const Event after = b->record();
  c->wait(before);
  EXPECT_FALSE(c->knows(first)) << "that work of b did not wait for it";
  c->wait(after);
  EXPECT_TRUE(c->knows(first));
  work(*a);
  const Event second = a->record();
  c->wait(second);
  EXPECT_FALSE(b->knows(second));
  const Event last = c->record();
  EXPECT_FALSE(a->host_knows(second.ticket));
  c->host_wait(last);
  EXPECT_TRUE(a->host_knows(second.ticket)) << "the host waited for what waited for it";
  EXPECT_TRUE(b->knows(second));
  for (const auto* stream : {&a, &b}) (*stream)->synchronize();
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

TEST_P(Streams, BytesLeaveForHostMemoryAndComeBackAtTheSameTime) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor a(pool, DType::F32, {2}, Tag::Workspace), b(pool, DType::F32, {2}, Tag::Workspace);
  write<float>(*stream, a, std::vector<float>{1, 2});
  std::byte *out = a.raw(*stream), *in = b.raw(*stream);
  stream->enqueue_host("meet", WorkClass::Communication, [=](Transfers& transfers) {
    const std::shared_ptr<std::byte> first = transfers.host_scratch(8);
    const std::shared_ptr<std::byte> second = transfers.host_scratch(8);
    const float theirs[]{30, 40};
    std::memcpy(first.get(), theirs, 8);
    const Copy away[]{{second.get(), out, 4}, {second.get() + 4, out + 4, 4}};
    const Copy back[]{{in, first.get(), 8}};
    transfers.copy_both(away, back);
    transfers.copy_both({}, {});
    float gone[2];
    std::memcpy(gone, second.get(), 8);
    EXPECT_EQ(gone[0], 1);
    EXPECT_EQ(gone[1], 2);
  });
  EXPECT_EQ(read<float>(*stream, b), (std::vector<float>{30, 40}));
}

TEST_P(Streams, ManyPiecesAreCopiedWhateverTheirLengthAndPlace) {
  Pool pool(*device_);
  const auto stream = make("s");
  constexpr std::int64_t kElements = 1 << 18;
  const Tensor from(pool, DType::I16, {kElements}, Tag::Workspace);
  const Tensor to(pool, DType::I16, {kElements}, Tag::Workspace);
  std::vector<std::int16_t> values(kElements), expected(kElements, -1);
  for (std::int64_t i = 0; i < kElements; ++i) values[std::size_t(i)] = std::int16_t(i % 30011);
  write<std::int16_t>(*stream, from, values);
  write<std::int16_t>(*stream, to, expected);
  std::vector<std::array<std::int64_t, 3>> pieces;  // to, from, elements
  std::int64_t first = 0, last = kElements;
  for (int i = 0; i < 300; ++i) {
    const std::int64_t length = i % 7 == 0 ? 8 * (i % 5) : i == 100 ? 70001 : (i * 37) % 601;
    last -= length;
    pieces.push_back({last, first, length});
    std::copy_n(values.begin() + first, length, expected.begin() + last);
    first += length + i % 3;
    last -= i % 4;
  }
  std::byte *in = to.raw(*stream), *out = from.raw(*stream);
  stream->enqueue_host("meet", WorkClass::Communication, [=](Transfers& transfers) {
    std::vector<Copy> copies;
    for (const auto& [there, here, length] : pieces) {
      copies.push_back({in + 2 * there, out + 2 * here, 2 * length});
    }
    transfers.copy_pieces(copies);
    transfers.copy_pieces({});
  });
  EXPECT_EQ(read<std::int16_t>(*stream, to), expected);
}

// A few small pieces, then more or larger ones: a GPU then takes another path.
TEST_P(Streams, PiecesAreCopiedBesideWhateverElseIsAskedFor) {
  for (const auto& [pieces, elements] : {std::pair{3, 5}, {40, 5}, {3, 400'000}}) {
    Pool pool(*device_);
    const auto stream = make("s");
    const Shape shape{pieces + 1, elements};
    const Tensor from(pool, DType::F32, shape, Tag::Workspace);
    const Tensor to(pool, DType::F32, shape, Tag::Workspace);
    std::vector<float> values(static_cast<std::size_t>(from.elements()));
    std::iota(values.begin(), values.end(), 0.0f);
    write<float>(*stream, from, values);
    const std::int64_t bytes = elements * std::int64_t{sizeof(float)};
    std::byte *in = to.raw(*stream), *out = from.raw(*stream);
    stream->enqueue_host("meet", WorkClass::Communication, [=](Transfers& transfers) {
      std::vector<Copy> copies;
      for (std::int64_t i = 0; i < pieces; ++i) {
        copies.push_back({in + i * bytes, out + i * bytes, bytes});
      }
      transfers.copy_pieces(copies, [&] {
        const std::shared_ptr<std::byte> host = transfers.host_scratch(bytes);
        const Copy leaves{host.get(), out + pieces * bytes, bytes};
        const Copy returns{in + pieces * bytes, host.get(), bytes};
        transfers.copy_both({&leaves, 1}, {});
        transfers.copy_both({}, {&returns, 1});
      });
    });
    EXPECT_EQ(read<float>(*stream, to), values) << pieces << " of " << elements;
  }
}

TEST_P(Streams, AnErrorBesidePiecesIsTheStreams) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor from(pool, DType::F32, {2, 400'000}, Tag::Workspace);
  const Tensor to(pool, DType::F32, {2, 400'000}, Tag::Workspace);
  std::byte *in = to.raw(*stream), *out = from.raw(*stream);
  stream->enqueue_host("meet", WorkClass::Communication, [=](Transfers& transfers) {
    const Copy all{in, out, 2 * 400'000 * 4};
    transfers.copy_pieces({&all, 1}, [] { throw base::SystemError("a cable was pulled"); });
  });
  EXPECT_THROW(stream->synchronize(), base::SystemError);
}

TEST_P(Streams, SumsTakeAnyNumberOfSources) {
  Pool pool(*device_);
  const auto stream = make("s");
  constexpr int kSources = 200;
  const Tensor all(pool, DType::F32, {kSources}, Tag::Workspace);
  std::vector<float> values;
  for (int i = 0; i < kSources; ++i) values.push_back(std::ldexp(1.1f, i % 23));
  write<float>(*stream, all, values);
  std::byte* data = all.raw(*stream);
  stream->enqueue_host("sum", WorkClass::Communication, [=](Transfers& transfers) {
    std::vector<const std::byte*> sources;
    for (int i = 0; i < kSources; ++i) sources.push_back(data + 4 * i);
    transfers.reduce(DType::F32, Reduce::Sum, data + 4 * 150, sources, 1);
  });
  float expected = values[0];
  for (int i = 1; i < kSources; ++i) expected += values[static_cast<std::size_t>(i)];
  EXPECT_EQ(read<float>(*stream, all)[150], expected) << "in order, and one source is overwritten";
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

std::vector<float> numbers(int count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_P(Streams, LargeValuesComeBackToo) {
  Pool pool(*device_);
  const auto stream = make("s");
  const std::vector<float> up = numbers(3'000'000, 0.5f);
  const Tensor x(pool, DType::F32, {3'000'000}, Tag::Activations);
  upload<float>(*stream, x, up);
  EXPECT_EQ(read<float>(*stream, x), up);
}

// The copy is enqueued long before the host work has ended, and must not overtake it.
TEST_P(Streams, CopiesWaitForHostWorkBeforeThem) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor x = Tensor::host_visible(pool, DType::F32, {1}, Tag::Activations);
  const Tensor y(pool, DType::F32, {1}, Tag::Activations);
  float* place = x.host<float>();
  *place = 1;
  stream->enqueue_host("slow", kMemory, [=](Transfers&) {
    std::this_thread::sleep_for(milliseconds(50));
    *place = 2;
  });
  kernels::copy(*stream, y, x);
  EXPECT_EQ(read<float>(*stream, y), std::vector<float>{2});
}

TEST_P(Streams, TransfersReduceInTheOrderOfTheSources) {
  Pool pool(*device_);
  const auto stream = make("s");
  std::vector<Tensor> sources;
  std::vector<const std::byte*> at;
  for (const float first : {1.0f, 1e8f, -1e8f}) {
    sources.emplace_back(pool, DType::F32, Shape{1000}, Tag::Activations);
    write<float>(*stream, sources.back(), numbers(1000, first));
    at.push_back(sources.back().raw(*stream));
  }
  const Tensor sum(pool, DType::F32, {1000}, Tag::Activations);
  const Tensor most(pool, DType::F32, {1000}, Tag::Activations);
  std::byte *sum_at = sum.raw(*stream), *most_at = most.raw(*stream);
  stream->enqueue_host("reduce", kMemory, [=](Transfers& transfers) {
    transfers.reduce(DType::F32, Reduce::Sum, sum_at, at, 1000);
    transfers.reduce(DType::F32, Reduce::Max, most_at, at, 1000);
  });
  const std::vector<float> sums = read<float>(*stream, sum), mosts = read<float>(*stream, most);
  const std::vector<float> a = numbers(1000, 1), b = numbers(1000, 1e8f), c = numbers(1000, -1e8f);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(sums[i], (a[i] + b[i]) + c[i]);
    EXPECT_EQ(mosts[i], std::max({a[i], b[i], c[i]}));
  }
}

TEST_P(Streams, SpansOfTheDeviceAndOfTheHostAreOnOneClock) {
  Pool pool(*device_);
  const auto stream = make("s");
  const Tensor x(pool, DType::F32, {1 << 20}, Tag::Activations);
  const std::vector<float> values = numbers(1 << 20, 0);
  stream->start_recording();
  stream->set_label("node");
  const std::int64_t before = now_ns();
  for (int i = 0; i < 3; ++i) {
    upload<float>(*stream, x, values);
    stream->enqueue_host("sleep", kMemory, [](Transfers&) {
      std::this_thread::sleep_for(milliseconds(5));
    });
  }
  stream->synchronize();
  const std::int64_t after = now_ns();
  const std::vector<WorkSpan> spans = stream->take_recording();
  ASSERT_EQ(spans.size(), 6u);
  constexpr std::int64_t kSlack = 200'000;  // agreement of two clocks
  std::int64_t last = before - kSlack;
  for (const WorkSpan& span : spans) {
    EXPECT_EQ(span.label, "node");
    EXPECT_GE(span.begin_ns, last - kSlack) << span.name;
    EXPECT_GE(span.end_ns, span.begin_ns) << span.name;
    last = span.end_ns;
  }
  EXPECT_LE(last, after + kSlack);
}

TEST_P(Streams, MemoryThatIsNotThereIsAnErrorThatNamesTheSize) {
  if (GetParam() == devices::DeviceKind::HiddenCpu) GTEST_SKIP() << "it reserves what it has";
  try {
    device_->take(Memory::Device, std::size_t(1) << 50);
    FAIL() << "no error";
  } catch (const base::SystemError& error) {
    EXPECT_NE(std::string(error.what()).find("TiB"), std::string::npos) << error.what();
  }
}

}  // namespace stream_test
}  // namespace weft::tensor
