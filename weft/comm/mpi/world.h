// One process's place among the MPI ranks: the lock around every MPI call, waiting without
// spinning, and the word that some rank failed.
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

// What a rank tells all others, at most once of each kind. Fixed size, so that nothing a peer says
// decides how much is read.
struct Notice {
  enum class Kind : std::int32_t { Failed, Ended };
  Kind kind = Kind::Failed;
  std::array<char, 1020> reason{};  // ends with a zero
};

// Requests under way to and from peers, and the memory they use besides the tensors.
struct Requests {
  std::vector<MPI_Request> all;
  std::vector<int> members;  // the peer of each
  std::shared_ptr<void> storage;

  MPI_Request* add(int member);
  std::vector<int> late() const;  // peers with a request that is not over
};

class World {
 public:
  explicit World(double timeout_seconds);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  int local_rank() const { return local_rank_; }  // among those on this machine
  double timeout_seconds() const { return timeout_seconds_; }
  int largest_tag() const { return largest_tag_; }

  // Calls `start`, which adds to `requests`, with the data communicator and the lock.
  void post(Requests& requests, const std::function<void(MPI_Comm)>& start);

  // Sleeps and polls until all requests are over. Throws when a rank failed, and SystemError with
  // the text of `late` when nothing has moved for the timeout; requests still under way are then
  // cancelled. A failure elsewhere is heeded `patience` seconds later: bytes that both sides have
  // agreed on arrive, and memory must not be written after it was given back.
  void wait(Requests& requests,
            double patience,
            const std::function<std::string(const std::vector<int>&)>& late);

  // The first failure known here counts; tells all ranks if it is this one's.
  void fail(const std::string& reason);
  std::optional<Failure> failure() const;

  // Says that this rank is done and waits for the others: for as long as they take where all is
  // well, as MPI_Finalize does; for a short grace where one failed.
  void gather_ends();
  // Leaves MPI, together with the others if they all came to the end. Otherwise MPI is not
  // finalized, and the launcher ends the rest when this process exits. The last call here.
  void leave();

 private:
  using LateText = std::function<std::string(const std::vector<int>&)>;

  void poll_until_over(Requests& requests, double patience, const LateText& late);
  // The next three are called with the lock held.
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
