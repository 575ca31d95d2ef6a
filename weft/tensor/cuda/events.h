// Pool of CUDA events: creating one costs more than recording it.
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

  // nullptr: the GPU gives none. This happens after an error only; the GPU runs no more work then,
  // and the waiting thread is told.
  cudaEvent_t take() {
    if (free_.empty()) make_more();
    if (free_.empty()) return nullptr;
    const cudaEvent_t event = free_.back();
    free_.pop_back();
    return event;
  }
  // Returns an event without open queries. Streams that were told to wait for it still wait for the
  // old position.
  void give(cudaEvent_t event) { free_.push_back(event); }

 private:
  // Doubles the events (kFirst at first). The number in flight depends on timing; a step must not
  // create events because it has one more in flight than earlier steps.
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
