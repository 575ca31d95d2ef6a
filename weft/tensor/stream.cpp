#include "weft/tensor/stream.h"

#include <algorithm>

namespace weft::tensor {

bool Stream::knows(const Event& event) const {
  if (event.stream == nullptr || event.stream == this) return true;
  if (event.stream->host_knows(event.ticket)) return true;
  const auto known = known_.find(event.stream);
  return known != known_.end() && known->second.back().after >= event.ticket;
}

void Stream::learn(const Event& event) {
  if (event.stream == nullptr || event.stream == this) return;
  note(event.stream, event.ticket);
  for (const auto& [stream, history] : event.stream->known_) {
    if (stream != this) note(stream, known_at(history, event.ticket));
  }
}

void Stream::note(Stream* stream, std::uint64_t after) {
  if (after == 0) return;
  History& history = known_[stream];
  if (!history.empty() && history.back().after >= after) return;
  const std::uint64_t from = next_ticket();
  if (!history.empty() && history.back().from == from) {
    history.back().after = after;
  } else {
    history.push_back({.from = from, .after = after});
  }
}

// Ticket of the other stream that work with `ticket` comes after; 0: none.
std::uint64_t Stream::known_at(const History& history, std::uint64_t ticket) {
  const auto later = std::ranges::upper_bound(history, ticket, {}, &Known::from);
  return later == history.begin() ? 0 : std::prev(later)->after;
}

void Stream::host_learns(std::uint64_t ticket) {
  host_knows_ = std::max(host_knows_, ticket);
  for (auto& [stream, history] : known_) {
    stream->host_knows_ = std::max(stream->host_knows_, known_at(history, host_knows_));
    // All streams know the earlier positions of this stream.
    const auto later = std::ranges::upper_bound(history, host_knows_, {}, &Known::from);
    if (later - history.begin() > 1) history.erase(history.begin(), std::prev(later));
  }
}

std::vector<Stream*> Stream::known_streams() const {
  std::vector<Stream*> streams;
  streams.reserve(known_.size());
  for (const auto& [stream, history] : known_) streams.push_back(stream);
  return streams;
}

}  // namespace weft::tensor
