#include "weft/comm/failure.h"

#include "weft/base/error.h"
#include "weft/base/error_context.h"
#include "weft/base/text.h"

namespace weft::comm {

void throw_peer_failed(const Failure& failure) {
  throw base::SystemError(base::text("rank {} failed: {}", failure.rank, failure.reason));
}

std::string reason_of(const std::exception_ptr& error) { return base::reason_of(error); }

void throw_from_rank(int rank, const std::exception_ptr& error) {
  base::throw_at(base::text("rank {}", rank), error);
}

std::exception_ptr error_at_end(int rank,
                                const std::exception_ptr& own,
                                const std::optional<Failure>& failure) {
  try {
    if (own) throw_from_rank(rank, own);
    if (!failure) return nullptr;
    throw base::SystemError(base::text("rank {}: ended well, but rank {} failed: {}",
                                       rank,
                                       failure->rank,
                                       failure->reason));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace weft::comm
