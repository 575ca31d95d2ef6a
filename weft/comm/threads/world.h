// State shared by the rank threads of one process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "weft/comm/failure.h"
#include "weft/comm/threads/meeting_place.h"
#include "weft/comm/wire.h"

namespace weft::comm::threads {

class World {
 public:
  World(int ranks, double timeout_seconds, const grid::Fabric& fabric)
      : ranks_(ranks), timeout_seconds_(timeout_seconds), wire_(fabric, ranks) {}

  int ranks() const { return ranks_; }
  void set_fabric(const grid::Fabric& fabric) { wire_.set(fabric); }

  // Meeting place of the `occurrence`-th group that a rank made with this name and these members.
  MeetingPlace& place(const std::string& name, const std::vector<int>& members, int occurrence);

  // Records the first failure and poisons all meeting places with it.
  void fail(int rank, const std::string& reason);
  std::optional<Failure> failure() const;

 private:
  using Key = std::tuple<std::string, std::vector<int>, int>;

  const int ranks_;
  const double timeout_seconds_;
  Wire wire_;
  mutable std::mutex mutex_;
  std::map<Key, std::unique_ptr<MeetingPlace>> places_;
  std::optional<Failure> failure_;
};

// One rank thread's endpoint.
std::unique_ptr<Endpoint> make_endpoint(World& world, int rank);

}  // namespace weft::comm::threads
