// Continuous copies inside device memory until destruction, to measure how much they slow
// concurrent compute.
#pragma once

#include <atomic>
#include <memory>

#include "weft/tensor/stream.h"

namespace weft::measure {

class EndlessCopies {
 public:
  // SystemError if the device has too little memory.
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
