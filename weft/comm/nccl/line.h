// One NCCL communicator of this rank and its operations in flight.
//
// The operations of all communicators of a rank reach NCCL in the order of their enqueueing
// (Order), from any thread. Two ranks with different orders would wait for each other.
//
// The communicator is non-blocking: no NCCL call waits for a peer, so every wait has a deadline and
// ends when a rank fails. Each operation lies between two CUDA events. An operation that runs
// longer than the timeout is trouble.
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
  // For the enqueuing thread.
  std::uint64_t take_number() { return taken_++; }
  bool is_up(std::uint64_t number) const { return up_.load() >= number; }
  void next() { ++up_; }

 private:
  std::uint64_t taken_ = 0;  // used by the enqueuing thread only
  std::atomic<std::uint64_t> up_{0};
};

class Line {
 public:
  // Meets the other members, which give the same key. Throws if a member misses the timeout.
  Line(rendezvous::Store& store,
       Order& order,
       const Membership& group,
       const std::string& key,
       double timeout_seconds);

  // Argument of the calls of an operation.
  class Turn {
   public:
    Turn(Line& line, cudaStream_t stream) : line_(line), stream_(stream) {}
    ncclComm_t comm() const { return line_.comm_; }
    cudaStream_t stream() const { return stream_; }
    // Checks an NCCL result and waits until NCCL has enqueued the operation on the stream.
    void settle(const char* call, ncclResult_t result) { line_.settle(call, result); }

   private:
    Line& line_;
    const cudaStream_t stream_;
  };

  // Runs `calls` with a Turn when `number` is up. Throws if a rank has failed.
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

  // Current fault, for the watcher thread. nullopt: none.
  std::optional<std::string> trouble();
  // Aborts operations in flight; the streams continue with wrong data. Any thread may call it; it
  // may block.
  void cut();
  // Orderly end; the other members close theirs too.
  void close();

 private:
  struct Flight {
    std::string_view operation;
    std::uint64_t number = 0;
    cudaEvent_t begin = nullptr, end = nullptr;
    // Time at which it was first seen running.
    std::optional<rendezvous::Clock::time_point> since = std::nullopt;
  };

  void await(std::string_view operation, std::uint64_t number) const;
  // Call the next four with the lock held.
  void check_alive() const;
  void settle(const char* call, ncclResult_t result);
  cudaEvent_t mark(cudaStream_t stream);
  void forget_landed();

  rendezvous::Store& store_;
  Order& order_;
  const Membership group_;
  const double timeout_seconds_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  // nullptr: aborted or closed
  tensor::cuda::Events events_{tensor::cuda::EventUse::Order};
  std::deque<Flight> flights_;  // ordered: NCCL runs the operations of one communicator in order
  std::uint64_t runs_ = 0;
};

}  // namespace weft::comm::nccl
