// Counters of the operations and bytes of a group, shared by all backends.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <vector>

#include "weft/comm/communicator.h"

namespace weft::comm {

// Thread-safe: several streams may count at once.
class Ledger {
 public:
  explicit Ledger(int members) : sent_(static_cast<std::size_t>(members)) {}

  void count_call(Operation operation, std::int64_t bytes_sent);
  void count_sent(int member, Content content, std::int64_t bytes);

  std::map<Operation, Traffic> traffic() const;
  std::vector<Sent> sent() const;  // by member

 private:
  struct Counter {
    std::atomic<std::int64_t> calls{0};
    std::atomic<std::int64_t> bytes_sent{0};
  };

  std::array<Counter, kOperations> counters_;  // by operation
  // Bytes by member and content.
  std::vector<std::array<std::atomic<std::int64_t>, kContents>> sent_;
};

}  // namespace weft::comm
