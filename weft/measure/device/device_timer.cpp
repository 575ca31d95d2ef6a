#include "weft/measure/device/device_timer.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/median.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/pool.h"

namespace weft::measure {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::Tag;
using tensor::Tensor;

constexpr int kWarmUpCalls = 2;

// Random numbers are drawn in fp32, kDrawn at a time.
constexpr std::int64_t kColumns = 1024;
constexpr std::int64_t kDrawn = std::int64_t{64} << 20;

// Time of each of `calls` equal calls, from the spans of all.
std::vector<double> seconds_of_calls(std::span<const tensor::WorkSpan> spans, int calls) {
  const std::size_t each = spans.size() / static_cast<std::size_t>(calls);
  CHECK(each > 0 && spans.size() % static_cast<std::size_t>(calls) == 0,
        "{} pieces of work in {} calls",
        spans.size(),
        calls);
  std::vector<double> seconds;
  for (std::size_t first = 0; first < spans.size(); first += each) {
    const std::int64_t taken = spans[first + each - 1].end_ns - spans[first].begin_ns;
    seconds.push_back(static_cast<double>(taken) * 1e-9);
  }
  return seconds;
}

}  // namespace

DeviceTimer::DeviceTimer(tensor::Device& device, const TimerOptions& options)
    : device_(device),
      options_(options),
      pool_(device),
      stream_(device.make_stream("bench", tensor::StreamRole::Alone)),
      lead_(pool_,
            DType::F32,
            {std::max<std::int64_t>(1, options.lead_bytes / 4)},
            Tag::Workspace) {}

double DeviceTimer::seconds_of(const std::function<void()>& work) {
  throw_if_stopped(options_.stop);
  for (int i = 0; i < kWarmUpCalls; ++i) work();
  stream_->synchronize();
  std::vector<double> seconds;
  for (int round = 0; round < options_.rounds; ++round) {
    throw_if_stopped(options_.stop);
    stream_->start_recording();
    kernels::zero(*stream_, lead_);
    for (int i = 0; i < options_.calls; ++i) work();
    stream_->synchronize();
    const std::vector<tensor::WorkSpan> spans = stream_->take_recording();
    CHECK(!spans.empty(), "nothing was recorded");
    std::ranges::copy(seconds_of_calls(std::span(spans).subspan(1), options_.calls),
                      std::back_inserter(seconds));
  }
  return base::median(std::move(seconds));
}

Tensor DeviceTimer::empty(DType dtype, const Shape& shape) {
  return Tensor(pool_, dtype, shape, Tag::Workspace);
}

Tensor DeviceTimer::zeros(DType dtype, const Shape& shape) {
  Tensor t = empty(dtype, shape);
  kernels::zero(*stream_, t);
  return t;
}

Tensor DeviceTimer::random(DType dtype, const Shape& shape, float deviation) {
  throw_if_stopped(options_.stop);
  Tensor t = empty(dtype, shape);
  const std::int64_t rows = std::min(kDrawn, t.elements() + kColumns - 1) / kColumns;
  const Tensor drawn = empty(DType::F32, {rows, kColumns});
  const std::uint64_t key = next_key_++;
  for (std::int64_t begin = 0; begin < t.elements(); begin += drawn.elements()) {
    const std::int64_t count = std::min(drawn.elements(), t.elements() - begin);
    kernels::random_logits(*stream_,
                           drawn,
                           {.noise = {.key = key, .tokens = {.first = begin / kColumns}}});
    kernels::scale(*stream_, drawn, deviation);
    kernels::copy(*stream_, t.range(begin, Shape{count}), drawn.range(0, Shape{count}));
  }
  return t;
}

}  // namespace weft::measure
