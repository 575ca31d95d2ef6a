#include "weft/comm/transport.h"

#include <numeric>

namespace weft::comm {
namespace {

std::int64_t sum(std::span<const Part> parts, std::int64_t Part::*bytes) {
  return std::accumulate(parts.begin(),
                         parts.end(),
                         std::int64_t{0},
                         [=](std::int64_t all, const Part& part) { return all + part.*bytes; });
}

}  // namespace

std::vector<std::span<const Part>> by_member(std::span<const Part> parts) {
  std::vector<std::span<const Part>> all;
  while (!parts.empty()) {
    std::size_t end = 1;
    while (end < parts.size() && parts[end].member == parts.front().member) ++end;
    all.push_back(parts.first(end));
    parts = parts.subspan(end);
  }
  return all;
}

std::int64_t out_bytes(std::span<const Part> parts) { return sum(parts, &Part::out_bytes); }

std::int64_t in_bytes(std::span<const Part> parts) { return sum(parts, &Part::in_bytes); }

// A single copy may overlap itself; copies of several blocks may not.
void Transport::copy_own(std::span<const tensor::Copy> own, tensor::Transfers& transfers) {
  const auto overlaps = [](const tensor::Copy& copy) {
    return copy.to < copy.from + copy.bytes && copy.from < copy.to + copy.bytes;
  };
  if (own.size() == 1 && overlaps(own[0])) {
    transfers.copy(own[0].to, own[0].from, own[0].bytes);
  } else {
    transfers.copy_pieces(own);
  }
}

}  // namespace weft::comm
