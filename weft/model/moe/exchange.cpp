#include "weft/model/moe/exchange.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>

#include "weft/base/check.h"
#include "weft/base/sealed_count.h"
#include "weft/tensor/fault.h"

namespace weft::model {
namespace {

void check_counts(std::span<const std::int64_t> counts_E, std::int64_t source, std::int64_t most) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts_E) {
    if (count < 0 || count > most) {
      throw base::SystemError(
          base::text("member {} announces {} rows for one expert; it has at most {} in all",
                     source,
                     count,
                     most));
    }
    sum += count;
  }
  if (sum > most) {
    throw base::SystemError(
        base::text("member {} announces {} rows over all experts; it has at most {}",
                   source,
                   sum,
                   most));
  }
}

}  // namespace

Tensor gather_counts(const Context& context, comm::Communicator& ep, Tensor counts_N) {
  const std::int64_t n = counts_N.dim(0);
  if (ep.size() == 1) return counts_N.view({1, n});
  const Tensor all(context.pool, DType::I64, {ep.size() * n}, Tag::Communication);
  ep.all_gather(context.stream, all, counts_N, comm::Content::Metadata);
  return all.view({ep.size(), n});
}

Tensor show_to_host(const Context& context, const Tensor& counts_GN) {
  const Tensor shown =
      Tensor::host_visible(context.pool, DType::I64, counts_GN.shape(), Tag::Workspace);
  std::byte* to = shown.raw(context.stream);
  const std::byte* from = counts_GN.raw(context.stream);
  // Copied in pieces: a dry device copies nothing longer.
  constexpr std::int64_t kPiece = 32 << 10;
  std::vector<tensor::Download> all;
  for (std::int64_t at = 0; at < counts_GN.bytes(); at += kPiece) {
    const std::int64_t bytes = std::min(kPiece, counts_GN.bytes() - at);
    all.push_back({.to = to + at, .from = from + at, .bytes = bytes});
  }
  context.stream.download_all(std::move(all));
  return shown;
}

void open_counts(const Tensor& shown_GN) {
  auto* number = shown_GN.host<std::int64_t>();
  for (std::int64_t member = 0; member < shown_GN.dim(0); ++member) {
    for (std::int64_t i = 0; i < shown_GN.dim(1); ++i, ++number) {
      const std::optional<std::int64_t> count = base::unseal(*number, member, i);
      if (!count) {
        tensor::throw_fault(
            {.code = tensor::FaultCode::CountsDamaged, .numbers = {i, member, *number}});
      }
      *number = *count;
    }
  }
}

std::vector<std::int64_t> counts_on_host(const Tensor& shown_GN) {
  std::vector<std::int64_t> counts;
  const auto* row = shown_GN.host<const std::int64_t>();
  for (std::int64_t member = 0; member < shown_GN.dim(0); ++member) {
    counts.insert(counts.end(), row, row + shown_GN.dim(1));
    row += shown_GN.row_stride();
  }
  return counts;
}

Exchange plan_exchange(std::span<const std::int64_t> counts_GE,
                       std::int64_t ranks,
                       std::int64_t rank,
                       std::int64_t experts,
                       std::int64_t most_rows) {
  CHECK(std::ssize(counts_GE) == ranks * experts,
        "{} counts for {} x {}",
        counts_GE.size(),
        ranks,
        experts);
  const std::int64_t local = experts / ranks;
  const auto counts_of = [&](std::int64_t source) {
    return counts_GE.subspan(static_cast<std::size_t>(source * experts),
                             static_cast<std::size_t>(experts));
  };
  // Rows of `source` for the experts of `owner`.
  const auto slice = [&](std::int64_t source, std::int64_t owner) {
    return counts_of(source).subspan(static_cast<std::size_t>(owner * local),
                                     static_cast<std::size_t>(local));
  };
  const auto total = [](std::span<const std::int64_t> counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  Exchange plan;
  plan.expert_rows.assign(static_cast<std::size_t>(local), 0);
  for (std::int64_t source = 0; source < ranks; ++source) {
    check_counts(counts_of(source), source, most_rows);
    plan.send_rows.push_back(total(slice(rank, source)));
    plan.receive_rows.push_back(total(slice(source, rank)));
    plan.received += plan.receive_rows.back();
    std::ranges::copy(slice(rank, source), std::back_inserter(plan.send_blocks));
    std::ranges::copy(slice(source, rank), std::back_inserter(plan.receive_blocks));
    for (std::size_t e = 0; e < plan.expert_rows.size(); ++e)
      plan.expert_rows[e] += slice(source, rank)[e];
  }
  if (ranks == 1 || local == 1) return plan;
  std::vector<std::int64_t> expert_end(plan.expert_rows.size(), 0);
  std::exclusive_scan(plan.expert_rows.begin(),
                      plan.expert_rows.end(),
                      expert_end.begin(),
                      std::int64_t{0});
  std::int64_t wire = 0;
  for (std::int64_t source = 0; source < ranks; ++source) {
    for (std::size_t e = 0; e < expert_end.size(); ++e) {
      const std::int64_t rows = slice(source, rank)[e];
      if (rows == 0) continue;
      plan.to_expert_order.push_back({.from = wire, .to = expert_end[e], .rows = rows});
      plan.to_wire_order.push_back({.from = expert_end[e], .to = wire, .rows = rows});
      wire += rows;
      expert_end[e] += rows;
    }
  }
  return plan;
}

}  // namespace weft::model
