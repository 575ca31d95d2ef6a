// How many rows go where, from what all ranks counted.
#include <numeric>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

// The counts of all ranks. They come from other ranks, so they are checked before they are used.
struct CountTable {
  Matrix<std::int64_t> counts;
  Hops hops;

  std::int64_t to_machine(std::int64_t source, std::int64_t machine) const {
    return counts.row(source)[machine];
  }
  std::int64_t to_rank(std::int64_t source, std::int64_t rank) const {
    return counts.row(source)[hops.per_machine > 1 ? hops.machines() + rank : rank];
  }
  std::int64_t slots(std::int64_t source, std::int64_t rank) const {
    return counts.row(source)[hops.counts() - hops.ranks + rank];
  }
  std::int64_t arriving(std::int64_t rank) const {
    std::int64_t sum = 0;
    for (std::int64_t source = 0; source < hops.ranks; ++source) sum += slots(source, rank);
    return sum;
  }

  // False where a member announces what it cannot have.
  bool check(const Faults& faults) const {
    for (std::int64_t source = 0; source < hops.ranks; ++source) {
      const auto bounded = [&](FaultCode code, std::int64_t count, std::int64_t most) {
        if (count >= 0 && count <= most) return true;
        faults.raise(code, {source, count, most});
        return false;
      };
      for (std::int64_t machine = 0; machine < hops.machines(); ++machine) {
        const std::int64_t rows = to_machine(source, machine);
        if (!bounded(FaultCode::RowsForMachineAnnounced, rows, hops.most_tokens)) return false;
      }
      std::int64_t all = 0;
      for (std::int64_t rank = 0; rank < hops.ranks; ++rank) {
        const std::int64_t rows = to_rank(source, rank), chosen = slots(source, rank);
        if (!bounded(FaultCode::RowsForRankAnnounced, rows, hops.most_tokens) ||
            !bounded(FaultCode::SlotsForRankAnnounced, chosen, rows * hops.most_local)) {
          return false;
        }
        all += chosen;
      }
      const std::int64_t most = hops.most_tokens * hops.most_choices;
      if (!bounded(FaultCode::SlotsAnnounced, all, most)) return false;
    }
    return true;
  }
};

// False where somebody's budget is not enough.
bool split(const CountTable& table, std::int64_t* out) {
  const Hops& hops = table.hops;
  const std::int64_t n = hops.per_machine, machine = hops.rank / n, index = hops.rank % n;
  std::fill_n(out, hops.splits(), 0);
  std::int64_t* send_across = out;
  std::int64_t* receive_across = send_across + hops.machines();
  std::int64_t* send_within = receive_across + hops.machines();
  std::int64_t* receive_within = send_within + n;
  std::int64_t* slots = receive_within + n;
  for (std::int64_t rank = 0; rank < hops.ranks && hops.budget > 0; ++rank) {
    if (table.arriving(rank) > hops.budget) return false;
  }
  *slots = table.arriving(hops.rank);
  for (std::int64_t other = 0; other < hops.machines(); ++other) {
    const std::int64_t source = other * n + index;  // same index, other machine
    send_across[other] = table.to_machine(hops.rank, other);
    receive_across[other] = table.to_machine(source, machine);
    for (std::int64_t i = 0; i < n; ++i) {
      send_within[i] += table.to_rank(source, machine * n + i);
      receive_within[i] += table.to_rank(other * n + i, hops.rank);
    }
  }
  return true;
}

}  // namespace

void plan_hops(Stream& stream, Tensor splits, Tensor overflow, Tensor counts, const Hops& hops) {
  const CountTable table{matrix<std::int64_t>(stream, counts), hops};
  std::int64_t* out = data<std::int64_t>(stream, splits);
  double* flag = hops.budget > 0 ? data<double>(stream, overflow) : nullptr;
  const Faults faults(stream);
  enqueue(stream, "plan_hops", WorkClass::Memory, [=](Workers&) {
    if (table.check(faults) && !split(table, out)) *flag += 1;
  });
}

void sum_counts(Stream& stream, Tensor rows, Tensor counts, std::int64_t first) {
  const std::int64_t local = rows.dim(0);
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  std::int64_t* out = data<std::int64_t>(stream, rows);
  enqueue(stream, "sum_counts", WorkClass::Memory, [=](Workers&) {
    std::fill_n(out, local, 0);
    for (std::int64_t g = 0; g < table.rows; ++g) {
      for (std::int64_t l = 0; l < local; ++l) out[l] += table.row(g)[first + l];
    }
  });
}

}  // namespace weft::kernels::cpu
