#include "weft/comm/threads/world.h"

#include <utility>

#include "weft/comm/collectives.h"

namespace weft::comm::threads {
namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(World& world, MeetingPlace& place, Membership group)
      : world_(world), place_(place), group_(std::move(group)) {}

  void meet(const Call& call, std::span<const Part> parts, tensor::Transfers& transfers) override {
    place_.meet(group_, call, parts, transfers);
  }
  void fail(const std::string& reason) override { world_.fail(group_.world_rank(), reason); }

 private:
  World& world_;
  MeetingPlace& place_;
  const Membership group_;
};

class ThreadEndpoint final : public Endpoint {
 public:
  ThreadEndpoint(World& world, int rank) : world_(world), rank_(rank) {}

  int rank() const override { return rank_; }
  int world() const override { return world_.ranks(); }
  int local_rank() const override { return rank_; }

  std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) override {
    Membership group = make_membership(std::move(name), std::move(members), rank_, world());
    const int occurrence = made_[{group.name, group.members}]++;
    MeetingPlace& place = world_.place(group.name, group.members, occurrence);
    auto transport = std::make_unique<ThreadTransport>(world_, place, group);
    return std::make_unique<Collectives>(std::move(group), std::move(transport));
  }

  void fail(const std::string& reason) override { world_.fail(rank_, reason); }
  void set_fabric(const std::optional<grid::Fabric>& fabric) override {
    world_.set_fabric(fabric.value_or(grid::Fabric()));
  }

 private:
  World& world_;
  const int rank_;
  std::map<std::pair<std::string, std::vector<int>>, int> made_;
};

}  // namespace

MeetingPlace& World::place(const std::string& name,
                           const std::vector<int>& members,
                           int occurrence) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<MeetingPlace>& place = places_[{name, members, occurrence}];
  if (!place) {
    place = std::make_unique<MeetingPlace>(timeout_seconds_, wire_);
    if (failure_) place->poison(*failure_);
  }
  return *place;
}

void World::fail(int rank, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = Failure{.rank = rank, .reason = reason};
  for (const auto& [key, place] : places_) place->poison(*failure_);
}

std::optional<Failure> World::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::unique_ptr<Endpoint> make_endpoint(World& world, int rank) {
  return std::make_unique<ThreadEndpoint>(world, rank);
}

}  // namespace weft::comm::threads
