// This process in the world: the rendezvous, its communicators and a thread that watches both. If
// any rank fails, the watcher ends every wait for a peer. The streams then throw an error that
// names the failed rank.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weft/comm/nccl/card.h"
#include "weft/comm/nccl/line.h"
#include "weft/comm/rendezvous/store.h"
#include "weft/tensor/cuda/stream.h"

namespace weft::comm::nccl {

// Failure of the world, for streams, which may outlive the world.
class Verdict final : public tensor::cuda::Outside {
 public:
  explicit Verdict(int rank) : rank_(rank) {}
  void set(const Failure& failure);
  std::exception_ptr error() const override;

 private:
  const int rank_;
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
};

class World {
 public:
  World(const rendezvous::Place& place, const Card& card, double timeout_seconds);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const rendezvous::Place& place() const { return place_; }
  const std::shared_ptr<Verdict>& verdict() const { return verdict_; }
  Order& order() { return order_; }

  std::shared_ptr<Line> open(const Membership& group, const std::string& key);
  void close(const std::shared_ptr<Line>& line);

  void fail(const std::string& reason) { store_.fail(reason); }
  std::optional<Failure> failure() const { return store_.failure(); }
  void gather_ends() { store_.gather_ends(); }

 private:
  struct Aborts;

  void watch();
  void look_for_trouble();
  void abort_all(const Failure& failure);

  const rendezvous::Place place_;
  const Card card_;
  const double timeout_seconds_;
  rendezvous::Store store_;
  Order order_;
  const std::shared_ptr<Verdict> verdict_;
  std::optional<rendezvous::Clock::time_point> troubled_since_;  // used by the watcher thread only
  std::shared_ptr<Aborts> aborts_;
  std::mutex mutex_;  // guards the next three
  std::vector<std::shared_ptr<Line>> lines_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace weft::comm::nccl
