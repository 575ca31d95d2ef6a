#include <map>
#include <utility>

#include "weft/comm/nccl/communicator.h"
#include "weft/comm/nccl_entry.h"

namespace weft::comm::nccl {
namespace {

// Equal for the same members in the same order.
std::uint64_t fingerprint(const std::vector<int>& members) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const int rank : members) hash = (hash ^ static_cast<std::uint64_t>(rank)) * 0x100000001b3u;
  return hash;
}

class NcclEndpoint final : public Endpoint {
 public:
  explicit NcclEndpoint(World& world) : world_(world) {}

  int rank() const override { return world_.place().rank; }
  int world() const override { return world_.place().world; }
  int local_rank() const override { return world_.place().local_rank; }
  void set_fabric(const std::optional<grid::Fabric>& fabric) override { refuse_fabric(fabric); }

  std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) override {
    Membership group = make_membership(std::move(name), std::move(members), rank(), world());
    const int occurrence = made_[{group.name, group.members}]++;
    std::string key = base::text("group {} of {} {:x} {}",
                                 group.name.substr(0, 64),
                                 group.members.front(),
                                 fingerprint(group.members),
                                 occurrence);
    return std::make_unique<NcclCommunicator>(world_, std::move(group), std::move(key));
  }

  void fail(const std::string& reason) override { world_.fail(reason); }

 private:
  World& world_;
  std::map<std::pair<std::string, std::vector<int>>, int> made_;
};

void run_in(World& world, const LaunchOptions& options, const RankFunction& function) {
  std::exception_ptr error;
  try {
    NcclEndpoint endpoint(world);
    function(endpoint);
  } catch (...) {
    error = std::current_exception();
    world.fail(reason_of(error));
  }
  world.gather_ends();
  error = error_at_end(world.place().rank, error, world.failure());
  if (error && options.report) options.report(reason_of(error));
  if (error) std::rethrow_exception(error);
}

// A failure before the world exists is reported by this rank only.
std::unique_ptr<World> join_world(const rendezvous::Place& place, const LaunchOptions& options) {
  try {
    return std::make_unique<World>(place, use_card(place.local_rank), options.timeout_seconds);
  } catch (...) {
    const std::exception_ptr error =
        error_at_end(place.rank, std::current_exception(), std::nullopt);
    if (options.report) options.report(reason_of(error));
    std::rethrow_exception(error);
  }
}

void run(const rendezvous::Place& place,
         const LaunchOptions& options,
         const RankFunction& function) {
  const std::unique_ptr<World> world = join_world(place, options);
  run_in(*world, options, function);
}

}  // namespace
}  // namespace weft::comm::nccl

extern "C" const weft::comm::NcclEntry weft_nccl_entry{.version = weft::comm::kNcclEntryVersion,
                                                       .run = weft::comm::nccl::run};
