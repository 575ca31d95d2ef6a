// Who writes what of a run's state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/checkpoint/state.h"

namespace weft::train {

// An entry of a rank's list, as other ranks see it. Replicas have the same key.
struct EntryKey {
  std::int64_t key = 0, bytes = 0;
  bool operator==(const EntryKey&) const = default;
};

EntryKey key_of(const checkpoint::StateEntry& entry);

// For each entry of rank `self` whether it is the one that writes it: of each set of replicas one
// does, so that ranks write about as much as each other. Every rank finds the same.
std::vector<bool> written_by(int self, std::span<const std::vector<EntryKey>> ranks);

}  // namespace weft::train
