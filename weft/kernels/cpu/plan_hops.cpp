// How many rows go where, from what all ranks counted.
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

using base::text;

// The counts of all ranks. They come from other ranks, so they are checked before they are used.
struct CountTable {
  Matrix<std::int64_t> counts;
  Hops hops;

  std::int64_t to_node(std::int64_t source, std::int64_t node) const {
    return counts.row(source)[node];
  }
  std::int64_t to_rank(std::int64_t source, std::int64_t rank) const {
    return counts.row(source)[hops.per_node > 1 ? hops.nodes() + rank : rank];
  }
  std::int64_t slots(std::int64_t source, std::int64_t rank) const {
    return counts.row(source)[hops.counts() - hops.ranks + rank];
  }
  std::int64_t arriving(std::int64_t rank) const {
    std::int64_t sum = 0;
    for (std::int64_t source = 0; source < hops.ranks; ++source) sum += slots(source, rank);
    return sum;
  }

  void check() const {
    for (std::int64_t source = 0; source < hops.ranks; ++source) {
      for (std::int64_t node = 0; node < hops.nodes(); ++node) {
        bound(source, "rows for a node", to_node(source, node), hops.most_tokens);
      }
      std::int64_t all = 0;
      for (std::int64_t rank = 0; rank < hops.ranks; ++rank) {
        const std::int64_t rows = to_rank(source, rank);
        bound(source, "rows for a rank", rows, hops.most_tokens);
        bound(source, "slots for a rank", slots(source, rank), rows * hops.most_local);
        all += slots(source, rank);
      }
      bound(source, "slots in all", all, hops.most_tokens * hops.most_choices);
    }
  }

 private:
  static void bound(std::int64_t source,
                    std::string_view what,
                    std::int64_t count,
                    std::int64_t most) {
    if (count >= 0 && count <= most) return;
    throw base::SystemError(
        text("member {} announces {} {}; it can have at most {}", source, count, what, most));
  }
};

// False where somebody's budget is not enough.
bool split(const CountTable& table, std::int64_t* out) {
  const Hops& hops = table.hops;
  const std::int64_t n = hops.per_node, node = hops.rank / n, index = hops.rank % n;
  table.check();
  std::fill_n(out, hops.splits(), 0);
  std::int64_t* send_across = out;
  std::int64_t* receive_across = send_across + hops.nodes();
  std::int64_t* send_within = receive_across + hops.nodes();
  std::int64_t* receive_within = send_within + n;
  std::int64_t* slots = receive_within + n;
  for (std::int64_t rank = 0; rank < hops.ranks && hops.budget > 0; ++rank) {
    if (table.arriving(rank) > hops.budget) return false;
  }
  *slots = table.arriving(hops.rank);
  for (std::int64_t other = 0; other < hops.nodes(); ++other) {
    const std::int64_t source = other * n + index;  // same index, other node
    send_across[other] = table.to_node(hops.rank, other);
    receive_across[other] = table.to_node(source, node);
    for (std::int64_t i = 0; i < n; ++i) {
      send_within[i] += table.to_rank(source, node * n + i);
      receive_within[i] += table.to_rank(other * n + i, hops.rank);
    }
  }
  return true;
}

}  // namespace

void plan_hops(Stream& stream, Tensor splits, Tensor overflow, Tensor counts, const Hops& hops) {
  CHECK(hops.per_node >= 1 && hops.ranks % hops.per_node == 0 && hops.rank < hops.ranks,
        "rank {} of {}, {} a node",
        hops.rank,
        hops.ranks,
        hops.per_node);
  check_matrix("counts", counts, hops.ranks, hops.counts());
  check_vector("splits", splits, hops.splits());
  const CountTable table{matrix<std::int64_t>(stream, counts), hops};
  std::int64_t* out = splits.data<std::int64_t>(stream);
  double* flag = hops.budget > 0 ? overflow.data<double>(stream) : nullptr;
  stream.enqueue("plan_hops", WorkClass::Memory, [=](tensor::Workers&) {
    if (!split(table, out)) *flag += 1;
  });
}

void sum_counts(Stream& stream, Tensor rows, Tensor counts, std::int64_t first) {
  const std::int64_t local = vector_length("rows", rows);
  CHECK(first >= 0 && first + local <= matrix_shape("counts", counts).columns,
        "columns {} to {} of counts {}",
        first,
        first + local,
        counts.shape().print());
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  std::int64_t* out = rows.data<std::int64_t>(stream);
  stream.enqueue("sum_counts", WorkClass::Memory, [=](tensor::Workers&) {
    std::fill_n(out, local, 0);
    for (std::int64_t g = 0; g < table.rows; ++g) {
      for (std::int64_t l = 0; l < local; ++l) out[l] += table.row(g)[first + l];
    }
  });
}

}  // namespace weft::kernels
