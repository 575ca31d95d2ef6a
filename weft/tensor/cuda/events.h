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
    if (free_.empty()) make_more();
    if (free_.empty()) return nullptr;
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  // One that nobody asks about any more. A stream that was told to wait for it goes on waiting for
  // what it stood for then.
  void give(cudaEvent_t event) { free_.push_back(event); }

 private:
  // As many as there are, and a few to begin with: how many are under way at once depends on
  // timing, and a step shall not make events because it had one more than those before.
  void make_more() {
    const unsigned flags = use_ == EventUse::Order ? cudaEventDisableTiming : cudaEventDefault;
    const std::size_t more = all_.empty() ? kFirst : all_.size();
    for (std::size_t i = 0; i < more; ++i) {
      cudaEvent_t event = nullptr;
      if (cudaEventCreateWithFlags(&event, flags) != cudaSuccess) return;
      all_.push_back(event);
      free_.push_back(event);
    }
  }

  static constexpr std::size_t kFirst = 128;
  const EventUse use_;
  std::vector<cudaEvent_t> all_, free_;
};

}  // namespace weft::tensor::cuda
