// Meeting of the threads of one group. Each thread offers its buffers, checks the others' and
// copies its part from them. No thread takes its buffers back before the last copy ends. Over
// emulated links, each thread then waits until its last byte would have passed them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "weft/comm/failure.h"
#include "weft/comm/transport.h"
#include "weft/comm/wire.h"

namespace weft::comm::threads {

class MeetingPlace {
 public:
  MeetingPlace(double timeout_seconds, Wire& wire)
      : timeout_seconds_(timeout_seconds), wire_(wire) {}

  // Transport::meet for one member of the group.
  void meet(const Membership& group,
            const Call& call,
            std::span<const Part> parts,
            tensor::Transfers& transfers);

  // Ends all meetings, present and future.
  void poison(const Failure& failure);

 private:
  // Buffers offered by one member. The parts belong to its waiting thread.
  struct Offer {
    bool present = false;
    Call call;
    std::span<const Part> parts;
    std::int64_t end_ns = 0;  // when its bytes, in and out, have passed the wire; 0: at once
  };
  struct Meeting {
    std::vector<Offer> offers;  // by member
    int expected = 0;
    int arrived = 0;
    int copying = 0;  // members that may be reading others' buffers
    int copied = 0;
    int gone = 0;
  };
  // Sender, receiver (-1 for collectives), sequence, step.
  using Key = std::tuple<int, int, std::uint64_t, std::int32_t>;
  using Lock = std::unique_lock<std::mutex>;

  static Key key_of(const Membership& group, const Call& call, std::span<const Part> parts);
  static void copy_from_others(const Membership& group,
                               const Meeting& meeting,
                               const Offer& own,
                               tensor::Transfers& transfers);
  void wait_for_all(Lock& lock, const Membership& group, Meeting& meeting, const Offer& own);
  void wait_for_copies(Lock& lock, Meeting& meeting);
  void notify_all(Lock& lock);
  // Called by the last member to arrive.
  void reserve_wire(const Membership& group, Meeting& meeting);
  // False if a failure came first.
  bool wait_for_wire(Lock& lock, std::int64_t end_ns);
  // Called with the lock held: no copy starts from now on.
  void break_up(const Membership& group, const std::string& reason);

  const double timeout_seconds_;
  Wire& wire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable failed_;  // separate, so that other meetings do not wake sleeping threads
  std::map<Key, Meeting> meetings_;
  std::optional<Failure> failure_;
};

}  // namespace weft::comm::threads
