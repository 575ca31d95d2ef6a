// Assignment of a run's state to the ranks that write it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "weft/checkpoint/state.h"

namespace weft::train {

// Entry of a rank's list for comparison between ranks. Replicas have equal keys.
struct EntryKey {
  std::int64_t key = 0, bytes = 0;
  bool operator==(const EntryKey&) const = default;
};

EntryKey key_of(const checkpoint::StateEntry& entry);

// Writing rank of each key: one replica writes, balanced over the ranks. Every rank gets the same
// result.
std::map<std::int64_t, int> writers_of(std::span<const std::vector<EntryKey>> ranks);

// For each entry of rank `self`: true if that rank writes it.
std::vector<bool> written_by(int self, std::span<const std::vector<EntryKey>> ranks);

}  // namespace weft::train
