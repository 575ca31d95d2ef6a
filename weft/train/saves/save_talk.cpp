#include "weft/train/saves/save_talk.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"
#include "weft/tensor/transfer.h"

namespace weft::train {
namespace {

using base::at;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

std::size_t words_of(std::int64_t bytes) { return at((bytes + 7) / 8); }

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

SaveTalk::SaveTalk(Engine& engine)
    : pool_(engine.pool()),
      world_(*engine.groups().world),
      stream_(engine.lanes()[schedule::Lane::Compute]) {}

std::vector<std::int64_t> SaveTalk::gather(const std::vector<std::int64_t>& own) {
  Tensor mine(pool_, DType::I64, {std::ssize(own)}, Tag::Communication);
  Tensor all(pool_, DType::I64, {world_.size() * std::ssize(own)}, Tag::Communication);
  tensor::upload<std::int64_t>(stream_, mine, own);
  world_.all_gather(stream_, all, mine, comm::Content::Metadata);
  return tensor::read<std::int64_t>(stream_, all);
}

std::vector<std::vector<EntryKey>> SaveTalk::gather_keys(const std::vector<EntryKey>& own) {
  const std::vector<std::int64_t> counts = gather(std::vector{std::ssize(own)});
  const std::int64_t most = std::ranges::max(counts);
  std::vector<std::int64_t> words(at(2 * most), 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    words[2 * i] = own[i].key;
    words[2 * i + 1] = own[i].bytes;
  }
  const std::vector<std::int64_t> all = gather(words);
  std::vector<std::vector<EntryKey>> ranks(counts.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::int64_t i = 0; i < counts[rank]; ++i) {
      const std::size_t first = 2 * (rank * at(most) + at(i));
      ranks[rank].push_back({.key = all[first], .bytes = all[first + 1]});
    }
  }
  return ranks;
}

std::vector<std::string> SaveTalk::collect(const std::string& own) {
  const std::vector<std::int64_t> sizes = gather(std::vector{std::ssize(own)});
  std::vector<std::string> texts;
  if (world_.rank() != 0) {
    std::vector<std::int64_t> words(words_of(std::ssize(own)), 0);
    std::ranges::copy(own, reinterpret_cast<char*>(words.data()));
    Tensor message(pool_, DType::I64, {std::ssize(words)}, Tag::Communication);
    tensor::upload<std::int64_t>(stream_, message, words);
    world_.send(stream_, message, 0);
    stream_.synchronize();
    return texts;
  }
  texts.push_back(own);
  for (int rank = 1; rank < world_.size(); ++rank) {
    const auto count = static_cast<std::int64_t>(words_of(sizes[at(rank)]));
    Tensor message(pool_, DType::I64, {count}, Tag::Communication);
    world_.receive(stream_, message, rank);
    const std::vector<std::int64_t> words = tensor::read<std::int64_t>(stream_, message);
    texts.emplace_back(reinterpret_cast<const char*>(words.data()), at(sizes[at(rank)]));
  }
  return texts;
}

}  // namespace weft::train
