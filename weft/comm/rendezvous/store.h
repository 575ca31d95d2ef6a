// A rank's side of the rendezvous: its connection to rank 0 (server.h) during the run.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "weft/comm/failure.h"
#include "weft/comm/rendezvous/server.h"

namespace weft::comm::rendezvous {

class Store {
 public:
  // Returns when all ranks have arrived. `card` identifies the GPU of this rank; two ranks with one
  // GPU are refused. Empty: not compared. SystemError if ranks are missing at the timeout or one is
  // refused.
  Store(const Place& place, const std::string& card, double timeout_seconds);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Small values (message.h) by key; a key is put once. get() waits for the put until the timeout.
  // Both throw if a rank failed.
  void put(const std::string& key, const std::string& value);
  std::string get(const std::string& key);

  // Reports the failure of this rank; the first failure of the world counts. Any thread may call
  // these two.
  void fail(const std::string& reason);
  std::optional<Failure> failure() const;

  // Reports the end of this rank and waits for the others. Without a failure the wait is unlimited;
  // after a failure it is a short grace period.
  void gather_ends();

 private:
  void join(const std::string& card);
  void listen();
  void take(const Message& message);
  void lose_connection(const std::string& reason);
  void send(const Message& message);

  const Place place_;
  const double timeout_seconds_;
  const Clock::time_point deadline_;  // deadline for all ranks to arrive
  std::unique_ptr<Server> server_;    // on rank 0 only
  base::Descriptor socket_;
  std::mutex sending_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable heard_;
  std::map<std::string, std::string> values_;
  std::optional<Failure> failure_;
  std::optional<std::string> refused_;
  bool is_welcome_ = false;
  bool all_ended_ = false;
  std::atomic<bool> stopping_{false};
  std::thread listener_;
};

}  // namespace weft::comm::rendezvous
