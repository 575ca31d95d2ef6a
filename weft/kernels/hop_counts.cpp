#include "weft/kernels/hop_counts.h"

#include <algorithm>

namespace weft::kernels {

using tensor::FaultCode;

std::int64_t HopCounts::to_machine(std::int64_t source, std::int64_t machine) const {
  return line(source)[machine];
}
std::int64_t HopCounts::to_rank(std::int64_t source, std::int64_t rank) const {
  return line(source)[hops.per_machine > 1 ? hops.machines() + rank : rank];
}
std::int64_t HopCounts::slots(std::int64_t source, std::int64_t rank) const {
  return line(source)[hops.counts() - hops.ranks + rank];
}
std::int64_t HopCounts::arriving(std::int64_t rank) const {
  std::int64_t sum = 0;
  for (std::int64_t source = 0; source < hops.ranks; ++source) sum += slots(source, rank);
  return sum;
}

std::optional<tensor::Fault> HopCounts::fault() const {
  for (std::int64_t source = 0; source < hops.ranks; ++source) {
    std::optional<tensor::Fault> found;
    const auto bound = [&](FaultCode code, std::int64_t count, std::int64_t most) {
      if (found || (count >= 0 && count <= most)) return;
      found = {.code = code, .numbers = {source, count, most}};
    };
    for (std::int64_t machine = 0; machine < hops.machines(); ++machine) {
      bound(FaultCode::RowsForMachineAnnounced, to_machine(source, machine), hops.most_tokens);
    }
    std::int64_t all = 0;
    for (std::int64_t rank = 0; rank < hops.ranks && !found; ++rank) {
      const std::int64_t rows = to_rank(source, rank), chosen = slots(source, rank);
      bound(FaultCode::RowsForRankAnnounced, rows, hops.most_tokens);
      bound(FaultCode::SlotsForRankAnnounced, chosen, rows * hops.most_local);
      all += chosen;
    }
    bound(FaultCode::SlotsAnnounced, all, hops.most_tokens * hops.most_choices);
    if (found) return found;
  }
  return std::nullopt;
}

bool HopCounts::split(std::int64_t* splits) const {
  const std::int64_t n = hops.per_machine, machine = hops.rank / n, index = hops.rank % n;
  std::fill_n(splits, hops.splits(), 0);
  std::int64_t* send_across = splits;
  std::int64_t* receive_across = send_across + hops.machines();
  std::int64_t* send_within = receive_across + hops.machines();
  std::int64_t* receive_within = send_within + n;
  for (std::int64_t rank = 0; rank < hops.ranks && hops.budget > 0; ++rank) {
    if (arriving(rank) > hops.budget) return false;
  }
  receive_within[n] = arriving(hops.rank);
  for (std::int64_t other = 0; other < hops.machines(); ++other) {
    const std::int64_t source = other * n + index;  // same index, other machine
    send_across[other] = to_machine(hops.rank, other);
    receive_across[other] = to_machine(source, machine);
    for (std::int64_t i = 0; i < n; ++i) {
      send_within[i] += to_rank(source, machine * n + i);
      receive_within[i] += to_rank(other * n + i, hops.rank);
    }
  }
  return true;
}

}  // namespace weft::kernels
