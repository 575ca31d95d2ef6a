#include "weft/comm/nccl/line.h"

#include <cstring>
#include <thread>
#include <utility>

namespace weft::comm::nccl {
namespace {

using rendezvous::Clock;
using rendezvous::seconds_from_now;

constexpr int kQuickLooks = 200;  // polls before the first sleep
constexpr auto kBetweenLooks = std::chrono::microseconds(50);

// NCCL id made by the first member and shared through the store.
ncclUniqueId shared_id(rendezvous::Store& store, const Membership& group, const std::string& key) {
  ncclUniqueId id{};
  if (group.self == 0) {
    check_nccl("ncclGetUniqueId", ncclGetUniqueId(&id));
    if (group.size() > 1) store.put(key, std::string(id.internal, sizeof id.internal));
    return id;
  }
  const std::string bytes = store.get(key);
  if (bytes.size() != sizeof id.internal) {
    throw base::SystemError(base::text("group '{}': an NCCL id of {} bytes where it has {}",
                                       group.name,
                                       bytes.size(),
                                       sizeof id.internal));
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

}  // namespace

Line::Line(rendezvous::Store& store,
           Order& order,
           const Membership& group,
           const std::string& key,
           double timeout_seconds)
    : store_(store), order_(order), group_(group), timeout_seconds_(timeout_seconds) {
  const ncclUniqueId id = shared_id(store, group, key);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::lock_guard lock(mutex_);
  try {
    settle("ncclCommInitRankConfig",
           ncclCommInitRankConfig(&comm_, group.size(), id, group.self, &config));
  } catch (...) {
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
    throw;
  }
}

void Line::await(std::string_view operation, std::uint64_t number) const {
  const auto deadline = seconds_from_now(timeout_seconds_);
  while (!order_.is_up(number)) {
    if (const auto failure = store_.failure()) throw_peer_failed(*failure);
    if (Clock::now() >= deadline) {
      throw base::SystemError(base::text(
          "'{}' {} waited {} s for an operation of this rank that was enqueued before it",
          group_.name,
          operation,
          timeout_seconds_));
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Line::check_alive() const {
  if (const auto failure = store_.failure()) throw_peer_failed(*failure);
  if (comm_ == nullptr) throw base::SystemError("its NCCL communicator was aborted");
}

void Line::settle(const char* call, ncclResult_t result) {
  if (result == ncclInProgress) {
    const auto deadline = seconds_from_now(timeout_seconds_);
    for (int looks = 0; result == ncclInProgress; ++looks) {
      check_nccl("ncclCommGetAsyncError", ncclCommGetAsyncError(comm_, &result), comm_);
      if (looks < kQuickLooks || result != ncclInProgress) continue;
      if (const auto failure = store_.failure()) throw_peer_failed(*failure);
      if (Clock::now() >= deadline) {
        throw base::SystemError(
            base::text("{}: rank {} waited {} s for the other members of '{}' [{}]",
                       call,
                       group_.world_rank(),
                       timeout_seconds_,
                       group_.name,
                       fmt::join(group_.members, " ")));
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  check_nccl(call, result, comm_);
}

cudaEvent_t Line::mark(cudaStream_t stream) {
  const cudaEvent_t event = events_.take();
  tensor::cuda::check("cudaEventRecord", cudaEventRecord(event, stream));
  return event;
}

void Line::forget_landed() {
  while (!flights_.empty() && cudaEventQuery(flights_.front().end) == cudaSuccess) {
    events_.give(flights_.front().begin);
    events_.give(flights_.front().end);
    flights_.pop_front();
  }
}

std::optional<std::string> Line::trouble() {
  // A thread inside NCCL holds the lock and checks for trouble itself.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || comm_ == nullptr) return std::nullopt;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  if (asked != ncclSuccess) state = asked;
  if (state != ncclSuccess && state != ncclInProgress) {
    return base::text("'{}': {}", group_.name, describe("NCCL", state, comm_));
  }
  forget_landed();
  if (flights_.empty()) return std::nullopt;
  Flight& first = flights_.front();
  if (!first.since) {
    if (cudaEventQuery(first.begin) == cudaSuccess) first.since = Clock::now();
    return std::nullopt;
  }
  if (Clock::now() - *first.since < std::chrono::duration<double>(timeout_seconds_)) {
    return std::nullopt;
  }
  return base::text(
      "'{}' {} #{}: rank {} waited {} s; others of ranks [{}] did not arrive, or mean "
      "another operation or size",
      group_.name,
      first.operation,
      first.number,
      group_.world_rank(),
      timeout_seconds_,
      fmt::join(group_.members, " "));
}

void Line::cut() {
  const std::lock_guard lock(mutex_);
  if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
}

void Line::close() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  try {
    settle("ncclCommFinalize", ncclCommFinalize(comm_));
    ncclCommDestroy(std::exchange(comm_, nullptr));
  } catch (const std::exception&) {
    ncclCommAbort(std::exchange(comm_, nullptr));
  }
}

}  // namespace weft::comm::nccl
