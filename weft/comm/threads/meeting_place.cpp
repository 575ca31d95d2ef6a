#include "weft/comm/threads/meeting_place.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "weft/base/check.h"
#include "weft/comm/agreement.h"

namespace weft::comm::threads {
namespace {

bool is_point_to_point(const Call& call) {
  return call.operation == Operation::Send || call.operation == Operation::Receive;
}

// Parts of an offer for `member`. A Send or Receive has parts for its peer only.
std::span<const Part> parts_for(int member, std::span<const Part> parts) {
  const std::vector<std::span<const Part>> all = by_member(parts);
  return all.size() == 1 ? all[0] : all[static_cast<std::size_t>(member)];
}

}  // namespace

MeetingPlace::Key MeetingPlace::key_of(const Membership& group,
                                       const Call& call,
                                       std::span<const Part> parts) {
  int from = -1, to = -1;
  if (is_point_to_point(call)) {
    const bool sending = call.operation == Operation::Send;
    from = sending ? group.self : parts[0].member;
    to = sending ? parts[0].member : group.self;
  }
  return {from, to, call.sequence, call.step};
}

void MeetingPlace::meet(const Membership& group,
                        const Call& call,
                        std::span<const Part> parts,
                        tensor::Transfers& transfers) {
  Lock lock(mutex_);
  const auto found = meetings_.try_emplace(key_of(group, call, parts)).first;
  Meeting& meeting = found->second;
  meeting.offers.resize(group.members.size());
  meeting.expected = is_point_to_point(call) ? 2 : group.size();
  Offer& own = meeting.offers[static_cast<std::size_t>(group.self)];
  CHECK(!own.present, "{}: rank {} is here twice", describe(group, call), group.world_rank());
  own = {.present = true, .call = call, .parts = parts};
  const bool last = meeting.arrived + 1 == meeting.expected;
  if (last && wire_.is_emulated()) reserve_wire(group, meeting);  // may throw: no member copies yet
  ++meeting.arrived;
  wait_for_all(lock, group, meeting, own);

  ++meeting.copying;
  lock.unlock();
  std::exception_ptr error;
  try {
    copy_from_others(group, meeting, own, transfers);
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  lock.lock();
  --meeting.copying;
  ++meeting.copied;
  if (error) break_up(group, reason_of(error));
  if (failure_ || meeting.copied == meeting.expected) notify_all(lock);
  // On a slow wire the others' copies end before this wait does.
  const bool arrived = own.end_ns == 0 || wait_for_wire(lock, own.end_ns);
  wait_for_copies(lock, meeting);
  if (error) std::rethrow_exception(error);
  if (meeting.copied < meeting.expected || !arrived) throw_peer_failed(*failure_);
  if (++meeting.gone == meeting.expected) meetings_.erase(found);
}

void MeetingPlace::wait_for_all(Lock& lock,
                                const Membership& group,
                                Meeting& meeting,
                                const Offer& own) {
  const auto complete = [&] { return failure_ || meeting.arrived == meeting.expected; };
  if (complete()) notify_all(lock);
  if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_seconds_), complete)) {
    std::vector<int> late;
    for (const std::span<const Part> with : by_member(own.parts)) {
      const int member = with.front().member;
      if (!meeting.offers[static_cast<std::size_t>(member)].present) late.push_back(member);
    }
    break_up(group, describe_late(group, own.call, late, timeout_seconds_));
    throw base::SystemError(failure_->reason);
  }
  if (failure_) {
    wait_for_copies(lock, meeting);
    throw_peer_failed(*failure_);
  }
}

// Runs without the lock: all offers are complete and stay until wait_for_copies.
void MeetingPlace::copy_from_others(const Membership& group,
                                    const Meeting& meeting,
                                    const Offer& own,
                                    tensor::Transfers& transfers) {
  std::vector<tensor::Copy> copies;
  for (const std::span<const Part> mine : by_member(own.parts)) {
    const int member = mine.front().member;
    if (member == group.self) continue;
    const Offer& offer = meeting.offers[static_cast<std::size_t>(member)];
    const std::span<const Part> theirs = parts_for(group.self, offer.parts);
    check_agreement(group, terms_of(own.call, mine), member, terms_of(offer.call, theirs));
    CHECK(mine.size() == theirs.size(), "{} blocks and {}", mine.size(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (mine[i].in_bytes > 0) copies.push_back({mine[i].in, theirs[i].out, mine[i].in_bytes});
    }
  }
  // The only place where bytes pass from rank to rank. Each rank copies its own part through its
  // own device.
  transfers.copy_pieces(copies);
}

void MeetingPlace::wait_for_copies(Lock& lock, Meeting& meeting) {
  // No timeout: copies end, and an early return would free memory that is being read.
  changed_.wait(lock, [&] {
    return meeting.copying == 0 && (failure_ || meeting.copied == meeting.expected);
  });
}

void MeetingPlace::reserve_wire(const Membership& group, Meeting& meeting) {
  std::vector<grid::Transfer> transfers;
  std::vector<std::pair<Offer*, Offer*>> ends;  // sender, receiver
  for (int from = 0; from < group.size(); ++from) {
    Offer& sender = meeting.offers[static_cast<std::size_t>(from)];
    if (!sender.present || sender.call.operation == Operation::Receive) continue;
    for (const std::span<const Part> with : by_member(sender.parts)) {
      const int to = with.front().member;
      if (to == from) continue;
      transfers.push_back({group.rank_of(from), group.rank_of(to), out_bytes(with)});
      ends.emplace_back(&sender, &meeting.offers[static_cast<std::size_t>(to)]);
    }
  }
  std::vector<std::int64_t> end_ns(transfers.size());
  wire_.reserve(transfers, end_ns);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (Offer* offer : {ends[i].first, ends[i].second}) {
      offer->end_ns = std::max(offer->end_ns, end_ns[i]);
    }
  }
}

// Notifies without the lock. A thread that wakes and finds the lock taken sleeps again. The
// scheduler may then give the core to a busy thread.
void MeetingPlace::notify_all(Lock& lock) {
  lock.unlock();
  changed_.notify_all();
  lock.lock();
}

// Sleeps, so that other threads of the rank can compute on the same core. A failure ends the sleep
// early: a failed world must not wait for a slow link.
bool MeetingPlace::wait_for_wire(Lock& lock, std::int64_t end_ns) {
  const std::chrono::steady_clock::time_point end{std::chrono::nanoseconds(end_ns)};
  return !failed_.wait_until(lock, end, [&] { return failure_.has_value(); });
}

void MeetingPlace::break_up(const Membership& group, const std::string& reason) {
  if (!failure_) failure_ = Failure{.rank = group.world_rank(), .reason = reason};
  changed_.notify_all();
  failed_.notify_all();
}

void MeetingPlace::poison(const Failure& failure) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
  changed_.notify_all();
  failed_.notify_all();
}

}  // namespace weft::comm::threads
