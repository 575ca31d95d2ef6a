#include "weft/comm/ledger.h"

namespace weft::comm {

void Ledger::count_call(Operation operation, std::int64_t bytes_sent) {
  Counter& counter = counters_[static_cast<std::size_t>(operation)];
  counter.calls.fetch_add(1, std::memory_order_relaxed);
  counter.bytes_sent.fetch_add(bytes_sent, std::memory_order_relaxed);
}

void Ledger::count_sent(int member, Content content, std::int64_t bytes) {
  sent_[static_cast<std::size_t>(member)][static_cast<std::size_t>(content)].fetch_add(
      bytes,
      std::memory_order_relaxed);
}

std::map<Operation, Traffic> Ledger::traffic() const {
  std::map<Operation, Traffic> all;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const Traffic traffic{.calls = counters_[i].calls.load(),
                          .bytes_sent = counters_[i].bytes_sent.load()};
    if (traffic.calls > 0) all[static_cast<Operation>(i)] = traffic;
  }
  return all;
}

std::vector<Sent> Ledger::sent() const {
  std::vector<Sent> all;
  for (const auto& member : sent_) {
    const auto bytes = [&](Content content) {
      return member[static_cast<std::size_t>(content)].load();
    };
    all.push_back({.payload = bytes(Content::Payload),
                   .probabilities = bytes(Content::Probabilities),
                   .metadata = bytes(Content::Metadata)});
  }
  return all;
}

}  // namespace weft::comm
