#include "weft/train/saves/state_owners.h"

#include <algorithm>
#include <map>
#include <set>

#include "weft/base/casts.h"

namespace weft::train {
namespace {

// FNV-1a: keys of replicas must be equal on every machine.
class Hash {
 public:
  void add(std::int64_t value) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void add(const tensor::Range& range) {
    add(range.begin);
    add(range.count);
  }
  void add_byte(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  std::int64_t value() const { return static_cast<std::int64_t>(value_); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

struct Replicas {
  EntryKey key;
  std::set<int> ranks;
};

}  // namespace

EntryKey key_of(const checkpoint::StateEntry& entry) {
  Hash hash;
  for (const char byte : entry.name) hash.add_byte(static_cast<std::uint8_t>(byte));
  for (const std::vector<tensor::Range>& ranges : entry.slice.dims) {
    hash.add(std::ssize(ranges));
    for (const tensor::Range& range : ranges) hash.add(range);
  }
  hash.add(entry.slice.elements);
  return {.key = hash.value(), .bytes = entry.tensor.bytes()};
}

// Keys with the fewest holders first, the largest of them first; each goes to the least loaded
// holder.
std::map<std::int64_t, int> writers_of(std::span<const std::vector<EntryKey>> ranks) {
  std::map<std::int64_t, Replicas> by_key;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const EntryKey& key : ranks[rank]) {
      Replicas& replicas = by_key.try_emplace(key.key, Replicas{.key = key}).first->second;
      replicas.ranks.insert(static_cast<int>(rank));
    }
  }
  std::vector<const Replicas*> order;
  for (const auto& [key, replicas] : by_key) order.push_back(&replicas);
  std::ranges::stable_sort(order, [](const Replicas* a, const Replicas* b) {
    if (a->ranks.size() != b->ranks.size()) return a->ranks.size() < b->ranks.size();
    return a->key.bytes > b->key.bytes;
  });
  std::vector<std::int64_t> load(ranks.size(), 0);
  std::map<std::int64_t, int> writers;
  for (const Replicas* replicas : order) {
    const int writer = *std::ranges::min_element(replicas->ranks, {}, [&](int rank) {
      return load[base::at(rank)];
    });
    load[base::at(writer)] += replicas->key.bytes;
    writers[replicas->key.key] = writer;
  }
  return writers;
}

std::vector<bool> written_by(int self, std::span<const std::vector<EntryKey>> ranks) {
  const std::map<std::int64_t, int> writers = writers_of(ranks);
  std::vector<bool> writes;
  for (const EntryKey& key : ranks[base::at(self)]) writes.push_back(writers.at(key.key) == self);
  return writes;
}

}  // namespace weft::train
