// A rank's side of the rendezvous: its connection to rank 0 (server.h) as long as the run lasts.
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
  // Returns when all ranks are here. `card` names the GPU of this rank, the same text for the same
  // one: two ranks with one card are refused; none is compared where it is empty. SystemError
  // where ranks are missing at the end of the timeout, and where one is refused.
  Store(const Place& place, const std::string& card, double timeout_seconds);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Small values (message.h), by keys that are put once. get() waits for somebody to put it, until
  // the timeout; both throw where a rank failed.
  void put(const std::string& key, const std::string& value);
  std::string get(const std::string& key);

  // This rank failed; the first failure of the world counts. Any thread may call these two.
  void fail(const std::string& reason);
  std::optional<Failure> failure() const;

  // Says that this rank is done and waits for the others: for as long as they take where all is
  // well, for a short grace where one failed.
  void gather_ends();

 private:
  void join(const std::string& card);
  void listen();
  void take(const Message& message);
  void lose_connection(const std::string& reason);
  void send(const Message& message);

  const Place place_;
  const double timeout_seconds_;
  const Clock::time_point deadline_;  // for all ranks to be here
  std::unique_ptr<Server> server_;    // rank 0's
  base::Descriptor socket_;
  std::mutex sending_;
  mutable std::mutex mutex_;  // of what follows
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
