// Map of the rows of two tensors to members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weft/comm/transport.h"

namespace weft::comm {

// Tensors of an all_to_all as plain pointers. Made when the operation is enqueued, used when it
// runs.
class RowExchange {
 public:
  // CHECKs equal dtype and equal row shape.
  RowExchange(const Membership& group, const Tensor& receive, const Tensor& send, Stream& stream);

  std::int64_t row_bytes() const { return row_bytes_; }

  // One part per block, member by member. SystemError with both numbers if the counts exceed the
  // tensors.
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

// Estimated rows to other members, for the trace. The real count is taken when the operation runs.
std::int64_t rows_to_others(std::span<const std::int64_t> send_rows, const Membership& group);

// Reads counts (int64) from device memory inside stream work. The copy goes through host-visible
// memory, which a GPU writes directly.
std::vector<std::int64_t> read_counts(tensor::Transfers& transfers,
                                      const std::byte* counts,
                                      std::size_t members);

}  // namespace weft::comm
