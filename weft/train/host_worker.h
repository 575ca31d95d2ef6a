// Host cores that a rank uses for its own work: they update optimizer state in host memory, on any
// device.
#pragma once

#include <memory>

#include "weft/tensor/device.h"
#include "weft/tensor/stream.h"

namespace weft::train {

class HostWorker {
 public:
  // `threads`: number of threads if the device is not the host; the host device has its own
  // threads.
  HostWorker(tensor::Device& device, int threads);

  // Synchronous stream: work is finished when enqueued, done by the caller's thread and the others.
  // Works on host-visible memory of the rank's device.
  tensor::Stream& stream() const { return *stream_; }

 private:
  const std::unique_ptr<tensor::Device> beside_;  // nullptr: the rank's device is the host
  const std::unique_ptr<tensor::Stream> stream_;
};

}  // namespace weft::train
