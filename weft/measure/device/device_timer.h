// Timer of device work by the device's own clock; makes the test data.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "weft/measure/runs/rounds.h"
#include "weft/tensor/pool.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/transfer.h"

namespace weft::measure {

struct TimerOptions {
  int rounds = 5;
  int calls = 10;  // calls per round
  // Bytes written before each round. Meanwhile the host issues the calls, so that none waits for
  // the host.
  std::int64_t lead_bytes = std::int64_t{1} << 30;
  const std::atomic<bool>* stop = nullptr;
};

class DeviceTimer {
 public:
  DeviceTimer(tensor::Device& device, const TimerOptions& options);

  tensor::Device& device() const { return device_; }
  tensor::Stream& stream() const { return *stream_; }
  tensor::Pool& pool() { return pool_; }

  // Median over all calls, after two warm-up calls. `work` must enqueue the same non-empty work
  // each time.
  double seconds_of(const std::function<void()>& work);

  tensor::Tensor empty(tensor::DType dtype, const tensor::Shape& shape);
  tensor::Tensor zeros(tensor::DType dtype, const tensor::Shape& shape);
  // Normal numbers with this deviation, different for each tensor, in fp32 or bf16. Products of
  // zeros run faster than products of real data.
  tensor::Tensor random(tensor::DType dtype, const tensor::Shape& shape, float deviation = 1);
  template <typename T>
  tensor::Tensor of(tensor::DType dtype, const tensor::Shape& shape, std::span<const T> values);

 private:
  tensor::Device& device_;
  const TimerOptions options_;
  tensor::Pool pool_;
  std::unique_ptr<tensor::Stream> stream_;
  tensor::Tensor lead_;
  std::uint64_t next_key_ = 1;
};

template <typename T>
tensor::Tensor DeviceTimer::of(tensor::DType dtype,
                               const tensor::Shape& shape,
                               std::span<const T> values) {
  const tensor::Tensor t = empty(dtype, shape);
  tensor::write<T>(*stream_, t, values);
  return t;
}

}  // namespace weft::measure
