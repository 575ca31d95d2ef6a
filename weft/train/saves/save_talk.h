// Ranks agree on a save, between steps: exchanges, and which rank writes which state.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/checkpoint/state.h"
#include "weft/train/engine.h"

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

// All ranks call the same function.
class SaveTalk {
 public:
  explicit SaveTalk(Engine& engine);

  // Gathers every rank's numbers by rank; each rank passes the same count.
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& own);

  std::vector<std::vector<EntryKey>> gather_keys(const std::vector<EntryKey>& own);

  // Every rank's text on rank 0, by rank; empty on the others.
  std::vector<std::string> collect(const std::string& own);

 private:
  tensor::Pool& pool_;
  comm::Communicator& world_;
  tensor::Stream& stream_;
};

}  // namespace weft::train
