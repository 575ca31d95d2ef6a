#include "weft/tensor/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "weft/base/error.h"
#include "weft/tensor/tensor.h"

namespace weft::tensor {
namespace pool_test {

TEST(Pool, PeaksCountRequestedBytesByTag) {
  Pool pool;
  {
    Tensor a(pool, DType::F32, {10}, Tag::Activations);
    { Tensor b(pool, DType::F32, {5}, Tag::Activations); }
    Tensor w(pool, DType::BF16, {3}, Tag::Weights);
    EXPECT_EQ(pool.use(Tag::Activations).bytes, 40u);
    EXPECT_EQ(pool.use(Tag::Activations).peak, 60u);
    EXPECT_EQ(pool.use(Tag::Weights).bytes, 6u);
    EXPECT_EQ(pool.total().peak, 60u);
  }
  EXPECT_EQ(pool.total().bytes, 0u);
  pool.reset_peaks();
  EXPECT_EQ(pool.total().peak, 0u);
}

TEST(Pool, EqualRequestsGetEqualAddressesEveryStep) {
  Pool pool;
  std::vector<std::vector<float*>> steps;
  for (int step = 0; step < 3; ++step) {
    pool.settle();
    std::vector<Tensor> live;
    std::vector<float*> addresses;
    for (const int n : {100, 7, 5000, 64, 1}) {
      live.emplace_back(pool, DType::F32, Shape{n}, Tag::Activations);
      addresses.push_back(live.back().host<float>());
      if (n == 7) live.erase(live.begin());
    }
    steps.push_back(addresses);
  }
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_EQ(steps[1], steps[2]);
}

// A tensor that a stream is still busy with when it is given back.
class ReleasedInUse : public ::testing::Test {
 protected:
  // Writes 1 and, a while later, keeps what is there then.
  float* use_on(Stream& stream, std::int64_t elements) {
    Tensor tensor(pool_, DType::F32, {elements}, Tag::Activations);
    float* address = tensor.data<float>(stream);
    stream.enqueue("slow", WorkClass::Memory, [this, address](Workers&) {
      address[0] = 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      seen_ = address[0];
    });
    return address;
  }

  const std::unique_ptr<Stream> a_ = make_cpu_stream("a", 1, StreamMode::Threaded);
  const std::unique_ptr<Stream> b_ = make_cpu_stream("b", 1, StreamMode::Threaded);
  Pool pool_;
  float seen_ = 0;
};

TEST_F(ReleasedInUse, AnotherStreamGetsFreshMemoryRatherThanAWait) {
  pool_.allocate_for(*a_);
  const float* address = use_on(*a_, 4);
  pool_.allocate_for(*b_);
  Tensor second(pool_, DType::F32, {4}, Tag::Activations);
  EXPECT_NE(second.data<float>(*b_), address);
  a_->synchronize();
}

TEST_F(ReleasedInUse, TheSameStreamGetsItAgain) {
  pool_.allocate_for(*a_);
  const float* address = use_on(*a_, 4);
  Tensor second(pool_, DType::F32, {4}, Tag::Activations);
  EXPECT_EQ(second.data<float>(*a_), address);
  a_->synchronize();
}

TEST_F(ReleasedInUse, AStreamThatWaitsForTheLastUseAnywayGetsIt) {
  pool_.allocate_for(*a_);
  const float* address = use_on(*a_, 4);
  b_->wait(a_->record());
  pool_.allocate_for(*b_);
  Tensor second(pool_, DType::F32, {4}, Tag::Activations);
  EXPECT_EQ(second.data<float>(*b_), address);
  b_->synchronize();
  a_->synchronize();
}

TEST_F(ReleasedInUse, WhereMuchLiesIdleTheOldestIsGivenAndWaitedFor) {
  pool_.allocate_for(*a_);
  constexpr std::int64_t kElements = 1 << 20;  // eight such fill what the pool takes at a time
  std::vector<Tensor> all;
  for (int i = 0; i < 7; ++i)
    all.emplace_back(pool_, DType::F32, Shape{kElements}, Tag::Activations);
  float* oldest = use_on(*a_, kElements);
  for (Tensor& tensor : all) {
    tensor.data<float>(*a_);
    a_->enqueue("use", WorkClass::Memory, [](Workers&) {});
  }
  all.clear();
  pool_.allocate_for(*b_);
  Tensor next(pool_, DType::F32, {kElements}, Tag::Activations);
  float* p = next.data<float>(*b_);
  EXPECT_EQ(p, oldest);
  b_->enqueue("overwrite", WorkClass::Memory, [p](Workers&) { p[0] = 2; });
  b_->synchronize();
  a_->synchronize();
  EXPECT_EQ(seen_, 1);
}

TEST(Pool, MemoryForOtherStagesIsNotReusedBeforeItIsIdle) {
  const auto a = make_cpu_stream("a", 1, StreamMode::Threaded);
  Pool pool;
  std::atomic<bool> go = false;
  const auto make = [&] {
    return Tensor(pool, DType::F32, {4}, Tag::Activations, Reuse::WhenIdle);
  };
  float* address = nullptr;
  {
    Tensor first = make();
    address = first.data<float>(*a);
    a->enqueue("send", WorkClass::Communication, [&go](Workers&) { go.wait(false); });
  }
  EXPECT_EQ(pool.use(Tag::Activations).bytes, 0u);
  {
    Tensor second = make();
    EXPECT_NE(second.host<float>(), address) << "the host would wait for ever";
    EXPECT_EQ(pool.use(Tag::Activations).bytes, 16u);
  }
  go = true;
  go.notify_all();
  a->synchronize();
  Tensor third = make(), fourth = make();
  EXPECT_TRUE(third.host<float>() == address || fourth.host<float>() == address);
  EXPECT_EQ(pool.use(Tag::Activations).peak, 32u);
}

TEST(Pool, ManyRandomBlocksNeverOverlap) {
  Pool pool;
  std::vector<Tensor> live;
  std::uint64_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    if (live.size() > 20 && (state >> 60) % 2 == 0) {
      live.erase(live.begin() + static_cast<std::ptrdiff_t>((state >> 33) % live.size()));
      continue;
    }
    const auto n = static_cast<std::int64_t>((state >> 40) % 3000);
    Tensor t(pool, DType::I32, {n}, Tag::Workspace);
    for (std::int64_t j = 0; j < n; ++j) t.host<std::int32_t>()[j] = i;
    live.push_back(t);
    for (const Tensor& other : live) {
      for (std::int64_t j = 1; j < other.elements(); ++j) {
        ASSERT_EQ(other.host<std::int32_t>()[j], other.host<std::int32_t>()[0]);
      }
    }
  }
}

TEST(Tensor, ColumnsAreStridedViews) {
  Pool pool;
  Tensor t(pool, DType::F32, {2, 6}, Tag::Activations);
  for (int i = 0; i < 12; ++i) t.host<float>()[i] = static_cast<float>(i);
  const Tensor c = t.columns(2, 3);
  EXPECT_EQ(c.shape(), (Shape{2, 3}));
  EXPECT_EQ(c.row_stride(), 6);
  EXPECT_FALSE(c.contiguous());
  EXPECT_EQ(c.host<float>()[c.row_stride()], 8);
  EXPECT_EQ(t.rows(1, 1).host<float>()[0], 6);
  EXPECT_THROW(c.view({6}), base::InternalError);
  EXPECT_THROW(t.rows(1, 2), base::InternalError);
}

TEST(Tensor, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f)), 1.0f);
  EXPECT_EQ(static_cast<float>(BFloat16(1.00390625f)), 1.0f);       // halfway, even below
  EXPECT_EQ(static_cast<float>(BFloat16(1.01171875f)), 1.015625f);  // halfway, even above
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
}

}  // namespace pool_test
}  // namespace weft::tensor
