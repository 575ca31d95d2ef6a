// The cores of the host as a rank uses them for work of its own: optimizer state that lies in host
// memory is changed by them, whatever the rank's device is.
#pragma once

#include <memory>

#include "weft/tensor/device.h"
#include "weft/tensor/stream.h"

namespace weft::train {

class HostWorker {
 public:
  // `threads`: where the rank's device is not the host itself, which has threads of its own number.
  HostWorker(tensor::Device& device, int threads);

  // Work is over when it is enqueued: the caller's thread does it, with the others. Of host-visible
  // memory of the rank's device.
  tensor::Stream& stream() const { return *stream_; }

 private:
  const std::unique_ptr<tensor::Device> beside_;  // none where the rank's device is the host
  const std::unique_ptr<tensor::Stream> stream_;
};

}  // namespace weft::train
