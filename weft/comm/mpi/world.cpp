#include "weft/comm/mpi/world.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "weft/base/check.h"

namespace weft::comm::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int kNoticeTag = 1;
// Time for all ranks to end after a failure. Longer than the wait for bytes that may still arrive.
constexpr double kGraceSeconds = 3;

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Growing sleep between polls: short at first, since answers often come at once. Later sleeps are a
// fiftieth of the time waited, which adds no noticeable delay; a poll may take 30 us. Never yields:
// the scheduler delays a yielding thread when it becomes runnable.
class Pause {
 public:
  void take() {
    std::this_thread::sleep_for(sleep_);
    waited_ += sleep_;
    const auto longest = std::clamp(waited_ / 50, microseconds(100), microseconds(1000));
    sleep_ = std::min(sleep_ * 3 / 2, longest);
  }

 private:
  microseconds sleep_{5}, waited_{0};
};

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw base::SystemError(base::text("{}: {}", call, text.data()));
}

MPI_Request* Requests::add(int member) {
  members.push_back(member);
  return &all.emplace_back(MPI_REQUEST_NULL);
}

std::vector<int> Requests::late() const {
  std::set<int> late;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != MPI_REQUEST_NULL) late.insert(members[i]);
  }
  return {late.begin(), late.end()};
}

namespace {

int rank_on_machine() {
  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  int rank = 0;
  check_mpi(MPI_Comm_rank(machine, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_free(&machine), "MPI_Comm_free");
  return rank;
}

}  // namespace

World::World(double timeout_seconds) : timeout_seconds_(timeout_seconds) {
  int started = 0;
  check_mpi(MPI_Initialized(&started), "MPI_Initialized");
  if (started != 0) throw base::SystemError("MPI runs once a process, and it has run");
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED) {
    throw base::SystemError(
        base::text("this MPI allows calls of one thread only (level {}, {} needed)",
                   provided,
                   MPI_THREAD_SERIALIZED));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
  local_rank_ = rank_on_machine();
  // Duplicates inherit the error handler.
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &data_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &notices_), "MPI_Comm_dup");
  int* largest = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &found), "MPI_Comm_get_attr");
  largest_tag_ = found != 0 ? *largest : 32767;  // minimum that the standard guarantees
}

void World::post(Requests& requests, const std::function<void(MPI_Comm)>& start) {
  const std::lock_guard lock(mutex_);
  try {
    start(data_);
  } catch (...) {
    abandon(requests);
    throw;
  }
}

void World::wait(Requests& requests,
                 double patience,
                 const std::function<std::string(const std::vector<int>&)>& late) {
  try {
    poll_until_over(requests, patience, late);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    abandon(requests);
    throw;
  }
}

void World::poll_until_over(Requests& requests, double patience, const LateText& late) {
  auto deadline = after(timeout_seconds_);
  std::optional<Clock::time_point> heed;  // time to give in to a failure elsewhere
  std::vector<int> moved(requests.all.size());
  Pause pause;
  while (true) {
    std::unique_lock lock(mutex_);
    listen();
    int count = 0;
    check_mpi(MPI_Testsome(static_cast<int>(requests.all.size()),
                           requests.all.data(),
                           &count,
                           moved.data(),
                           MPI_STATUSES_IGNORE),
              "MPI_Testsome");
    if (count == MPI_UNDEFINED) return;  // none is left
    const auto now = Clock::now();
    if (count > 0) deadline = after(timeout_seconds_);
    if (failure_ && !heed) heed = after(patience);
    if (heed && now >= std::min(*heed, deadline)) throw_peer_failed(*failure_);
    if (now >= deadline) throw base::SystemError(late(requests.late()));
    lock.unlock();
    pause.take();
  }
}

void World::abandon(Requests& requests) {
  for (MPI_Request& request : requests.all) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  abandoned_.push_back(std::move(requests.storage));
}

void World::tell_all(Notice::Kind kind, const std::string& reason) {
  auto notice = std::make_unique<Notice>();
  notice->kind = kind;
  const std::size_t length = std::min(reason.size(), notice->reason.size() - 1);
  std::memcpy(notice->reason.data(), reason.data(), length);
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    // An unreachable peer learns of the failure from the launcher.
    if (MPI_Isend(notice.get(), sizeof(Notice), MPI_BYTE, peer, kNoticeTag, notices_, &request) ==
        MPI_SUCCESS)
      MPI_Request_free(&request);
  }
  told_.push_back(std::move(notice));
}

void World::listen() {
  while (true) {
    int found = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, notices_, &found, &status), "MPI_Iprobe");
    if (found == 0) return;
    Notice notice;
    const int peer = status.MPI_SOURCE;
    check_mpi(
        MPI_Recv(&notice, sizeof(Notice), MPI_BYTE, peer, kNoticeTag, notices_, MPI_STATUS_IGNORE),
        "MPI_Recv");
    notice.reason.back() = '\0';
    switch (notice.kind) {
      case Notice::Kind::Failed:
        if (!failure_) failure_ = Failure{.rank = peer, .reason = notice.reason.data()};
        break;
      case Notice::Kind::Ended:
        ended_.insert(peer);
        break;
    }
  }
}

void World::fail(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = Failure{.rank = rank_, .reason = reason};
  tell_all(Notice::Kind::Failed, reason);
}

std::optional<Failure> World::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void World::gather_ends() {
  {
    const std::lock_guard lock(mutex_);
    tell_all(Notice::Kind::Ended, "");
  }
  std::optional<Clock::time_point> give_up;
  Pause pause;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      listen();
      all_here_ = static_cast<int>(ended_.size()) == ranks_ - 1;
      if (failure_ && !give_up) give_up = after(kGraceSeconds);
    }
    if (all_here_ || (give_up && Clock::now() >= *give_up)) return;
    pause.take();
  }
}

void World::leave() {
  if (all_here_) check_mpi(MPI_Finalize(), "MPI_Finalize");
}

}  // namespace weft::comm::mpi
