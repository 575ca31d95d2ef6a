// CUDA events for reuse: making one costs more than recording it.
#pragma once

#include <vector>

#include "weft/tensor/cuda/call.h"

namespace weft::tensor::cuda {

enum class EventUse { Order, Time };

class Events {
 public:
  explicit Events(EventUse use) : use_(use) {}
  ~Events() {
    for (const cudaEvent_t event : all_) cudaEventDestroy(event);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  // Null where the card gives none: after an error it does nothing more, and who waits is told.
  cudaEvent_t take() {
    if (free_.empty()) {
      cudaEvent_t event = nullptr;
      const unsigned flags = use_ == EventUse::Order ? cudaEventDisableTiming : cudaEventDefault;
      if (cudaEventCreateWithFlags(&event, flags) != cudaSuccess) return nullptr;
      all_.push_back(event);
      return event;
    }
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  // One that nobody asks about any more. A stream that was told to wait for it goes on waiting for
  // what it stood for then.
  void give(cudaEvent_t event) { free_.push_back(event); }

 private:
  const EventUse use_;
  std::vector<cudaEvent_t> all_, free_;
};

}  // namespace weft::tensor::cuda
