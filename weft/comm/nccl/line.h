// One NCCL communicator of this rank, and the operations under way on it.
//
// The calls of all communicators of a rank reach NCCL in the order in which their operations were
// enqueued (Order), whatever threads the streams issue them from: two ranks whose orders differ
// would wait for each other.
//
// It is made non-blocking: no call of NCCL waits for a peer, so that every wait has a deadline and
// ends when a rank fails. Each operation stands between two CUDA events; one that has begun and
// does not end within the timeout is trouble.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "weft/comm/membership.h"
#include "weft/comm/nccl/call.h"
#include "weft/comm/rendezvous/store.h"
#include "weft/tensor/cuda/events.h"

namespace weft::comm::nccl {

class Order {
 public:
  // For whoever enqueues.
  std::uint64_t take_number() { return taken_++; }
  bool is_up(std::uint64_t number) const { return up_.load() >= number; }
  void next() { ++up_; }

 private:
  std::uint64_t taken_ = 0;  // the enqueuing thread's
  std::atomic<std::uint64_t> up_{0};
};

class Line {
 public:
  // Meets the other members, who give the same key; throws where one does not come in time.
  Line(rendezvous::Store& store,
       Order& order,
       const Membership& group,
       const std::string& key,
       double timeout_seconds);

  // What the calls of an operation get.
  class Turn {
   public:
    Turn(Line& line, cudaStream_t stream) : line_(line), stream_(stream) {}
    ncclComm_t comm() const { return line_.comm_; }
    cudaStream_t stream() const { return stream_; }
    // Every result of NCCL goes through here: waits until it is handed to the stream.
    void settle(const char* call, ncclResult_t result) { line_.settle(call, result); }

   private:
    Line& line_;
    const cudaStream_t stream_;
  };

  // Hands over one operation when its number is up: what `calls` does with its Turn. Throws where a
  // rank has failed.
  template <typename Calls>
  void run(std::string_view operation,
           std::uint64_t number,
           cudaStream_t stream,
           const Calls& calls) {
    await(operation, number);
    const std::lock_guard lock(mutex_);
    check_alive();
    const cudaEvent_t begin = mark(stream);
    Turn turn(*this, stream);
    calls(turn);
    flights_.push_back(
        {.operation = operation, .number = runs_++, .begin = begin, .end = mark(stream)});
    order_.next();
  }

  // What is wrong with it now, for the thread that watches.
  std::optional<std::string> trouble();
  // Ends what is under way; the streams go on, with wrong data. Any thread may call it; it may
  // block.
  void cut();
  // The end where all is well; the other members end theirs too.
  void close();

 private:
  struct Flight {
    std::string_view operation;
    std::uint64_t number = 0;
    cudaEvent_t begin = nullptr, end = nullptr;
    std::optional<rendezvous::Clock::time_point> since = std::nullopt;  // it was seen to run
  };

  void await(std::string_view operation, std::uint64_t number) const;
  // The next four are called with the lock held.
  void check_alive() const;
  void settle(const char* call, ncclResult_t result);
  cudaEvent_t mark(cudaStream_t stream);
  void forget_landed();

  rendezvous::Store& store_;
  Order& order_;
  const Membership group_;
  const double timeout_seconds_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // none: aborted or closed
  tensor::cuda::Events events_{tensor::cuda::EventUse::Order};
  std::deque<Flight> flights_;  // NCCL runs the operations of one communicator in order
  std::uint64_t runs_ = 0;
};

}  // namespace weft::comm::nccl
