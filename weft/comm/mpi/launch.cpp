#include "weft/comm/launch.h"

#include <utility>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/comm/collectives.h"
#include "weft/comm/mpi/transport.h"
#include "weft/comm/mpi/world.h"

namespace weft::comm {
namespace {

class MpiEndpoint final : public Endpoint {
 public:
  explicit MpiEndpoint(mpi::World& world)
      : world_(world), shared_(static_cast<std::size_t>(world.ranks())) {}

  int rank() const override { return world_.rank(); }
  int world() const override { return world_.ranks(); }
  int local_rank() const override { return world_.local_rank(); }
  void set_fabric(const std::optional<grid::Fabric>& fabric) override { refuse_fabric(fabric); }

  std::unique_ptr<Communicator> group(std::string name, std::vector<int> members) override {
    Membership group = make_membership(std::move(name), std::move(members), rank(), world());
    std::vector<int> channels;
    for (const int peer : group.members)
      channels.push_back(shared_[static_cast<std::size_t>(peer)]++);
    auto transport = mpi::make_transport(world_, group, std::move(channels));
    return std::make_unique<Collectives>(std::move(group), std::move(transport));
  }

  void fail(const std::string& reason) override { world_.fail(reason); }

 private:
  mpi::World& world_;
  std::vector<int> shared_;  // number of groups made so far with each rank
};

void check_world(int wanted, const mpi::World& world) {
  if (wanted == 0 || wanted == world.ranks()) return;
  throw base::ConfigError(base::text(
      "the run needs {} ranks as MPI processes (runtime.backend=mpi) and {} started: use "
      "mpirun -n {}, or runtime.backend=threads, which runs them without a launcher",
      wanted,
      base::counted(world.ranks(), "process"),
      wanted));
}

}  // namespace

void run_mpi(const LaunchOptions& options, const RankFunction& function) {
  check_options(options, 0);
  refuse_fabric(options.fabric);
  mpi::World world(options.timeout_seconds);
  std::exception_ptr error;
  try {
    check_world(options.world, world);
    MpiEndpoint endpoint(world);
    function(endpoint);
  } catch (...) {
    error = std::current_exception();
    world.fail(reason_of(error));
  }
  try {
    world.gather_ends();
  } catch (...) {
    if (!error) error = std::current_exception();
  }
  error = error_at_end(world.rank(), error, world.failure());
  if (error && options.report) options.report(reason_of(error));
  world.leave();
  if (error) std::rethrow_exception(error);
}

bool has_mpi() { return true; }

}  // namespace weft::comm
