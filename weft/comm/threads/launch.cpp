#include "weft/comm/launch.h"

#include "weft/base/error.h"
#include "weft/base/parallel/thread.h"
#include "weft/base/text.h"
#include "weft/comm/threads/world.h"

namespace weft::comm {
namespace {

using threads::World;

void run_rank(World& world, int rank, const RankFunction& function, std::exception_ptr& error) {
  try {
    const auto endpoint = threads::make_endpoint(world, rank);
    function(*endpoint);
  } catch (...) {
    error = std::current_exception();
    world.fail(rank, reason_of(error));
  }
}

}  // namespace

void run_threads(const LaunchOptions& options, const RankFunction& function) {
  check_options(options, 1);
  World world(options.world, options.timeout_seconds, options.fabric.value_or(grid::Fabric()));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(options.world));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < options.world; ++rank) {
    std::exception_ptr& error = errors[static_cast<std::size_t>(rank)];
    try {
      ranks.push_back(base::start_thread("its thread", [&world, &function, &error, rank] {
        run_rank(world, rank, function, error);
      }));
    } catch (const base::SystemError& refused) {
      error = std::current_exception();
      world.fail(rank, refused.what());
      break;
    }
  }
  for (std::thread& rank : ranks) rank.join();

  const auto failure = world.failure();
  if (!failure) return;
  // The rank's own error names the node. The plain reason is used if the rank ended without an
  // error.
  const std::exception_ptr& error = errors[static_cast<std::size_t>(failure->rank)];
  if (error) throw_from_rank(failure->rank, error);
  throw base::SystemError(base::text("rank {}: {}", failure->rank, failure->reason));
}

}  // namespace weft::comm
