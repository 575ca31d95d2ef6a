#include "weft/comm/row_exchange.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/comm/call_checks.h"

namespace weft::comm {
namespace {

// First row of every block.
std::vector<std::int64_t> first_rows(const RowCounts& rows, int members) {
  const std::size_t all = rows.counts.size(), groups = static_cast<std::size_t>(members);
  const std::size_t blocks = all / groups;
  std::vector<std::int64_t> first(all);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < all; ++i) {
    const bool is_by_member = rows.order == RowOrder::ByMember;
    const std::size_t place = is_by_member ? i : i % groups * blocks + i / groups;
    first[place] = row;
    row += rows.counts[place];
  }
  return first;
}

}  // namespace

RowExchange::RowExchange(const Membership& group,
                         const Tensor& receive,
                         const Tensor& send,
                         Stream& stream)
    : self_(group.self), world_rank_(group.world_rank()), members_(group.size()) {
  row_bytes_ = check_row_exchange(receive, send);
  receive_room_ = receive.dim(0);
  send_room_ = send.dim(0);
  receive_ = receive.raw(stream);
  send_ = send.raw(stream);
}

void RowExchange::check_rows(std::string_view what,
                             const RowCounts& rows,
                             std::int64_t room) const {
  const std::int64_t counts = std::ssize(rows.counts);
  CHECK(counts > 0 && counts % members_ == 0, "{} counts for a group of {}", counts, members_);
  std::int64_t left = room;
  for (const std::int64_t count : rows.counts) {
    if (count < 0 || count > left) {
      throw base::SystemError(base::text("rank {} {} [{}] rows; the tensor has {}",
                                         world_rank_,
                                         what,
                                         fmt::join(rows.counts, " "),
                                         room));
    }
    left -= count;
  }
}

void RowExchange::check_own(const RowCounts& receive_rows, const RowCounts& send_rows) const {
  const auto own = [this](const RowCounts& rows) {
    const std::size_t blocks = rows.counts.size() / static_cast<std::size_t>(members_);
    return rows.counts.subspan(static_cast<std::size_t>(self_) * blocks, blocks);
  };
  if (std::ranges::equal(own(receive_rows), own(send_rows))) return;
  throw base::SystemError(base::text("rank {} expects {} rows from itself and sends {}",
                                     world_rank_,
                                     fmt::join(own(receive_rows), " "),
                                     fmt::join(own(send_rows), " ")));
}

std::vector<Part> RowExchange::parts(const RowCounts& receive_rows,
                                     const RowCounts& send_rows) const {
  check_rows("receives", receive_rows, receive_room_);
  check_rows("sends", send_rows, send_room_);
  CHECK(receive_rows.counts.size() == send_rows.counts.size(),
        "{} counts of rows to receive and {} to send",
        receive_rows.counts.size(),
        send_rows.counts.size());
  check_own(receive_rows, send_rows);
  const std::vector<std::int64_t> in = first_rows(receive_rows, members_);
  const std::vector<std::int64_t> out = first_rows(send_rows, members_);
  const std::size_t blocks = in.size() / static_cast<std::size_t>(members_);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < in.size(); ++i) {
    parts.push_back({.member = static_cast<int>(i / blocks),
                     .out = send_ + out[i] * row_bytes_,
                     .out_bytes = send_rows.counts[i] * row_bytes_,
                     .in = receive_ + in[i] * row_bytes_,
                     .in_bytes = receive_rows.counts[i] * row_bytes_});
  }
  return parts;
}

std::int64_t rows_to_others(std::span<const std::int64_t> send_rows, const Membership& group) {
  const std::size_t blocks = send_rows.size() / group.members.size();
  CHECK(blocks > 0, "{} counts for a group of {}", send_rows.size(), group.size());
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < send_rows.size(); ++i) {
    if (i / blocks != static_cast<std::size_t>(group.self)) rows += send_rows[i];
  }
  return rows;
}

std::vector<std::int64_t> read_counts(tensor::Transfers& transfers,
                                      const std::byte* counts,
                                      std::size_t members) {
  const auto bytes = static_cast<std::int64_t>(members * sizeof(std::int64_t));
  const std::shared_ptr<std::byte> shown = transfers.host_scratch(bytes);
  transfers.copy(shown.get(), counts, bytes);
  const auto* numbers = reinterpret_cast<const std::int64_t*>(shown.get());
  return {numbers, numbers + members};
}

}  // namespace weft::comm
