// Who writes what of a run's state.
#pragma once

#include <cstdint>
#include <map>
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

// Which rank writes the replicas of each key: one does, so that ranks write about as much as each
// other. Every rank finds the same.
std::map<std::int64_t, int> writers_of(std::span<const std::vector<EntryKey>> ranks);

// For each entry of rank `self` whether it is the one that writes it.
std::vector<bool> written_by(int self, std::span<const std::vector<EntryKey>> ranks);

}  // namespace weft::train
