// Which rows of two tensors go to and come from which member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/comm/transport.h"

namespace weft::comm {

// The tensors of an all_to_all. A value with plain pointers, made where the operation is enqueued
// and used where it runs.
class RowExchange {
 public:
  // CHECKs that both have the same dtype and rows of the same shape.
  RowExchange(const Membership& group, const Tensor& receive, const Tensor& send, Stream& stream);

  std::int64_t row_bytes() const { return row_bytes_; }

  // One for each block, member by member. SystemError where the counts do not fit the tensors,
  // naming both numbers.
  std::vector<Part> parts(const RowCounts& receive_rows, const RowCounts& send_rows) const;

 private:
  void check_rows(std::string_view what, const RowCounts& rows, std::int64_t room) const;
  void check_own(const RowCounts& receive_rows, const RowCounts& send_rows) const;

  int self_;
  int world_rank_;
  int members_;
  std::int64_t row_bytes_;
  std::byte* receive_;
  std::int64_t receive_room_;  // rows
  const std::byte* send_;
  std::int64_t send_room_;
};

// What an operation sends, for the trace; what it did send is counted where it runs.
std::int64_t rows_to_others(std::span<const std::int64_t> send_rows, const Membership& group);

// Counts (int64) that lie in device memory, where the work of a stream needs them: copied through
// host-visible memory, which a card writes without going through pages of its own.
std::vector<std::int64_t> read_counts(tensor::Transfers& transfers,
                                      const std::byte* counts,
                                      std::size_t members);

}  // namespace weft::comm
