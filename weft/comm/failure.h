// Propagation of one rank's failure to the other ranks and to the caller.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace weft::comm {

// The first failure of a world.
struct Failure {
  int rank = 0;
  std::string reason;
};

// Throws the error of a peer: "rank 3 failed: ...".
[[noreturn]] void throw_peer_failed(const Failure& failure);

// Message of any exception.
std::string reason_of(const std::exception_ptr& error);

// Rethrows with "rank 3: " in front, as the same kind of error. Any other exception becomes an
// InternalError; std::bad_alloc becomes a SystemError.
[[noreturn]] void throw_from_rank(int rank, const std::exception_ptr& error);

// Final error of a rank that is a process: its own error with the rank in front, or the failure of
// a peer. nullptr: no failure.
std::exception_ptr error_at_end(int rank,
                                const std::exception_ptr& own,
                                const std::optional<Failure>& failure);

}  // namespace weft::comm
