// Times work on a device by the device's own clock, and makes the data that it works on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>

#include "weft/tensor/pool.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/transfer.h"

namespace weft::measure {

struct TimerOptions {
  int rounds = 5;
  int calls = 10;  // of a round
  // Written before each round: while the device is busy with it, the host issues the calls, and
  // none of them waits for the host.
  std::int64_t lead_bytes = std::int64_t{1} << 30;
  const std::atomic<bool>* stop = nullptr;
};

// Thrown out of a measurement that was told to stop.
struct Stopped {};

class DeviceTimer {
 public:
  DeviceTimer(tensor::Device& device, const TimerOptions& options);

  tensor::Device& device() const { return device_; }
  tensor::Stream& stream() const { return *stream_; }
  tensor::Pool& pool() { return pool_; }

  // The median of all calls, after two that warm up. `work` enqueues the same each time, something
  // at least.
  double seconds_of(const std::function<void()>& work);

  tensor::Tensor empty(tensor::DType dtype, const tensor::Shape& shape);
  tensor::Tensor zeros(tensor::DType dtype, const tensor::Shape& shape);
  // Normal numbers with that deviation, others for each tensor: what products of zeros reach, real
  // ones do not. fp32 or bf16.
  tensor::Tensor random(tensor::DType dtype, const tensor::Shape& shape, float deviation = 1);
  template <typename T>
  tensor::Tensor of(tensor::DType dtype, const tensor::Shape& shape, std::span<const T> values);

 private:
  void throw_if_stopped() const;

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
