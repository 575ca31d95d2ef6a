// One process among the MPI ranks: the lock around every MPI call, waiting without spinning, and
// failure notices.
#pragma once

#include <mpi.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/comm/failure.h"

namespace weft::comm::mpi {

// Throws SystemError with MPI's own text unless `code` is success.
void check_mpi(int code, const char* call);

// Notice from one rank to all others, at most one of each kind. Fixed size: a peer cannot choose
// how many bytes are read.
struct Notice {
  enum class Kind : std::int32_t { Failed, Ended };
  Kind kind = Kind::Failed;
  std::array<char, 1020> reason{};  // zero-terminated
};

// Requests in flight and the memory they use besides the tensors.
struct Requests {
  std::vector<MPI_Request> all;
  std::vector<int> members;  // peer of each request
  std::shared_ptr<void> storage;

  MPI_Request* add(int member);
  std::vector<int> late() const;  // peers with an unfinished request
};

class World {
 public:
  explicit World(double timeout_seconds);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int local_rank() const { return local_rank_; }  // index among the ranks of this machine
  double timeout_seconds() const { return timeout_seconds_; }
  int largest_tag() const { return largest_tag_; }

  // Calls `start` with the data communicator, under the lock; `start` adds to `requests`.
  void post(Requests& requests, const std::function<void(MPI_Comm)>& start);

  // Sleeps and polls until all requests are finished. Throws if a rank failed. SystemError with the
  // text of `late` if nothing has moved for the timeout; unfinished requests are then cancelled. A
  // failure elsewhere takes effect `patience` seconds later: agreed bytes still arrive, and MPI
  // must not write to freed memory.
  void wait(Requests& requests,
            double patience,
            const std::function<std::string(const std::vector<int>&)>& late);

  // Records the first known failure; tells all ranks if this rank failed.
  void fail(const std::string& reason);
  std::optional<Failure> failure() const;

  // Reports the end of this rank and waits for the others. Without a failure the wait is unlimited,
  // as in MPI_Finalize; after a failure it is a short grace period.
  void gather_ends();
  // Leaves MPI, together with the others if all reached the end. Otherwise MPI is not finalized,
  // and the launcher ends the other ranks when this process exits. Must be the last call.
  void leave();

 private:
  using LateText = std::function<std::string(const std::vector<int>&)>;

  void poll_until_over(Requests& requests, double patience, const LateText& late);
  // Call the next three with the lock held.
  void tell_all(Notice::Kind kind, const std::string& reason);
  void listen();
  void abandon(Requests& requests);

  const double timeout_seconds_;
  int rank_ = 0;
  int ranks_ = 1;
  int local_rank_ = 0;
  int largest_tag_ = 0;
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm notices_ = MPI_COMM_NULL;
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
  std::set<int> ended_;
  std::vector<std::unique_ptr<Notice>> told_;     // being sent
  std::vector<std::shared_ptr<void>> abandoned_;  // memory of requests that never ended
  bool all_here_ = false;
};

}  // namespace weft::comm::mpi
