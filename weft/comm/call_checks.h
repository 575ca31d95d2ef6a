// Argument checks that every backend makes when an operation is called. A failed check is an
// InternalError.
#pragma once

#include <cstdint>

#include "weft/comm/communicator.h"
#include "weft/comm/membership.h"

namespace weft::comm {

// CHECKs equal dtype and equal row shape; returns the bytes of a row.
std::int64_t check_row_exchange(const Tensor& receive, const Tensor& send);
void check_counts(const Membership& group, const Tensor& receive_rows, const Tensor& send_rows);
void check_all_gather(const Membership& group, const Tensor& receive, const Tensor& send);
void check_reduce_scatter(const Membership& group, const Tensor& receive, const Tensor& send);
void check_root(const Membership& group, int root);
void check_peer(const Membership& group, int peer);

}  // namespace weft::comm
