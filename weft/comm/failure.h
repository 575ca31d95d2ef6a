// How the failure of one rank reaches the others and the caller.
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

// What peers throw: "rank 3 failed: ...".
[[noreturn]] void throw_peer_failed(const Failure& failure);

// The text of any exception.
std::string reason_of(const std::exception_ptr& error);

// Throws the same kind of error with "rank 3: " in front. What is none of the three errors becomes
// an InternalError, except want of memory, which is a SystemError.
[[noreturn]] void throw_from_rank(int rank, const std::exception_ptr& error);

// What a rank that is a process has to say at the end: its own error with the rank in front, or
// that another one failed; none where all is well.
std::exception_ptr error_at_end(int rank,
                                const std::exception_ptr& own,
                                const std::optional<Failure>& failure);

}  // namespace weft::comm
