// Copies inside a device's memory, one after the other until the object goes: for measuring what
// they take of the compute beside them.
#pragma once

#include <atomic>
#include <memory>

#include "weft/tensor/stream.h"

namespace weft::measure {

class EndlessCopies {
 public:
  // SystemError where the device has no memory for them.
  explicit EndlessCopies(tensor::Device& device);
  ~EndlessCopies();
  EndlessCopies(const EndlessCopies&) = delete;
  EndlessCopies& operator=(const EndlessCopies&) = delete;

 private:
  tensor::Device& device_;
  std::byte* memory_;
  std::unique_ptr<tensor::Stream> stream_;
  std::atomic<bool> is_over_ = false;
};

}  // namespace weft::measure
