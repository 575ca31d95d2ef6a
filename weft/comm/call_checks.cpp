#include "weft/comm/call_checks.h"

#include "weft/base/check.h"
#include "weft/tensor/transfers.h"

namespace weft::comm {
namespace {

std::int64_t row_elements(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : tensor.shape().dims().subspan(1)) elements *= dim;
  return elements;
}

}  // namespace

std::int64_t check_row_exchange(const Tensor& receive, const Tensor& send) {
  CHECK(receive.shape().rank() >= 1 && send.shape().rank() >= 1 &&
            receive.dtype() == send.dtype() && row_elements(receive) == row_elements(send),
        "all_to_all from {} {} to {} {}",
        tensor::name_of(send.dtype()),
        send.shape().print(),
        tensor::name_of(receive.dtype()),
        receive.shape().print());
  return row_elements(send) * tensor::size_of(send.dtype());
}

void check_counts(const Membership& group, const Tensor& receive_rows, const Tensor& send_rows) {
  CHECK(receive_rows.elements() == group.size() && send_rows.elements() == group.size(),
        "counts {} and {} for a group of {}",
        receive_rows.shape().print(),
        send_rows.shape().print(),
        group.size());
  CHECK(receive_rows.contiguous() && send_rows.contiguous(), "strided counts");
}

void check_all_gather(const Membership& group, const Tensor& receive, const Tensor& send) {
  CHECK(receive.dtype() == send.dtype() && receive.elements() == group.size() * send.elements(),
        "all_gather of {} {} from {} members into {} {}",
        tensor::name_of(send.dtype()),
        send.shape().print(),
        group.size(),
        tensor::name_of(receive.dtype()),
        receive.shape().print());
}

void check_reduce_scatter(const Membership& group, const Tensor& receive, const Tensor& send) {
  CHECK(receive.dtype() == send.dtype() && send.elements() == group.size() * receive.elements(),
        "reduce_scatter of {} {} over {} members into {} {}",
        tensor::name_of(send.dtype()),
        send.shape().print(),
        group.size(),
        tensor::name_of(receive.dtype()),
        receive.shape().print());
  tensor::check_reducible(send.dtype());
}

void check_root(const Membership& group, int root) {
  CHECK(root >= 0 && root < group.size(), "root {} of a group of {}", root, group.size());
}

void check_peer(const Membership& group, int peer) {
  CHECK(peer >= 0 && peer < group.size() && peer != group.self,
        "member {} of group '{}' and its peer {}; the group has {} members",
        group.self,
        group.name,
        peer,
        group.size());
}

}  // namespace weft::comm
