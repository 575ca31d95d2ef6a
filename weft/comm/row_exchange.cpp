#include "weft/comm/row_exchange.h"

#include "weft/base/check.h"
#include "weft/comm/call_checks.h"

namespace weft::comm {

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
                             std::span<const std::int64_t> counts,
                             std::int64_t room) const {
  CHECK(counts.size() == static_cast<std::size_t>(members_),
        "{} counts for a group of {}",
        counts.size(),
        members_);
  std::int64_t left = room;
  for (const std::int64_t count : counts) {
    if (count < 0 || count > left) {
      throw base::SystemError(base::text("rank {} {} [{}] rows; the tensor has {}",
                                         world_rank_,
                                         what,
                                         fmt::join(counts, " "),
                                         room));
    }
    left -= count;
  }
}

std::vector<Part> RowExchange::parts(std::span<const std::int64_t> receive_rows,
                                     std::span<const std::int64_t> send_rows) const {
  check_rows("receives", receive_rows, receive_room_);
  check_rows("sends", send_rows, send_room_);
  const auto own = static_cast<std::size_t>(self_);
  if (receive_rows[own] != send_rows[own]) {
    throw base::SystemError(base::text("rank {} expects {} rows from itself and sends {}",
                                       world_rank_,
                                       receive_rows[own],
                                       send_rows[own]));
  }
  std::vector<Part> parts;
  std::int64_t in = 0, out = 0;  // bytes
  for (int i = 0; i < members_; ++i) {
    const auto member = static_cast<std::size_t>(i);
    parts.push_back({.member = i,
                     .out = send_ + out,
                     .out_bytes = send_rows[member] * row_bytes_,
                     .in = receive_ + in,
                     .in_bytes = receive_rows[member] * row_bytes_});
    in += parts.back().in_bytes;
    out += parts.back().out_bytes;
  }
  return parts;
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
