// Operations between ranks: collectives, and sends with their receives.
#pragma once

#include <span>
#include <vector>

#include "weft/exec/sim/step.h"

namespace weft::exec::sim {

struct Operation {
  schedule::Node meeting;
  // ranks as SimulatedStep::members gives them; a send's sender comes first
  std::vector<int> members;
  std::vector<int> entries;  // one per member; kNone: its graph lacks the operation
};

class Operations {
 public:
  explicit Operations(const SimulatedStep& step);

  int size() const { return static_cast<int>(operations_.size()); }
  const Operation& operator[](int operation) const {
    return operations_[static_cast<std::size_t>(operation)];
  }
  // Operation of an entry; kNone: none.
  int of(int rank, int entry) const {
    return of_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(entry)];
  }

 private:
  std::vector<Operation> operations_;
  std::vector<std::vector<int>> of_;  // by rank and entry
};

}  // namespace weft::exec::sim
