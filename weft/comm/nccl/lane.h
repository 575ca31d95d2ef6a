// NCCL communicators of a group: one for collectives, and one for each direction between two
// members that send to each other.
//
// NCCL runs the operations of one communicator in order, on any streams. Two neighbours that send
// to each other at once, or a ring that sends first, need one for each direction.
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <string>

#include "weft/comm/nccl/world.h"

namespace weft::comm::nccl {

// A communicator that opens asynchronously.
class Lane {
 public:
  Lane(World& world, Membership group, std::string key)
      : world_(world), group_(std::move(group)), key_(std::move(key)) {}
  ~Lane() {
    if (is_open()) world_.close(line_.get());
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Meets the other members, which call it too. Call once.
  void open() {
    try {
      promise_.set_value(world_.open(group_, key_));
    } catch (...) {
      promise_.set_exception(std::current_exception());
      throw;
    }
  }
  // Waits until open; throws what open() threw.
  Line& line() const { return *line_.get(); }

 private:
  bool is_open() const {
    if (line_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    try {
      line();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  World& world_;
  const Membership group_;
  const std::string key_;
  std::promise<std::shared_ptr<Line>> promise_;
  const std::shared_future<std::shared_ptr<Line>> line_{promise_.get_future()};
};

}  // namespace weft::comm::nccl
