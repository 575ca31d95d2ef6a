#include "weft/comm/launch.h"

#include <cmath>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/comm/failure.h"

namespace weft::comm {
namespace {

constexpr int kMaxWorld = 1 << 20;
constexpr double kMaxTimeout = 1e7;  // seconds; four months, far from overflowing a clock

}  // namespace

void poison_on_error(Endpoint& endpoint, const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    endpoint.fail(reason_of(std::current_exception()));
    throw;
  }
}

void check_options(const LaunchOptions& options, int smallest_world) {
  std::vector<std::string> complaints;
  if (options.world < smallest_world || options.world > kMaxWorld) {
    complaints.push_back(
        base::text("a world of {} ranks; use {} to {}", options.world, smallest_world, kMaxWorld));
  } else if (options.rank < 0 || (options.world > 0 && options.rank >= options.world)) {
    complaints.push_back(base::text("rank {} of a world of {}; use 0 to {}",
                                    options.rank,
                                    options.world,
                                    options.world - 1));
  }
  const double timeout = options.timeout_seconds;
  if (!(timeout > 0 && timeout <= kMaxTimeout)) {
    complaints.push_back(
        base::text("a timeout of {} s; use more than 0 and at most {}", timeout, kMaxTimeout));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

void refuse_fabric(const std::optional<grid::Fabric>& fabric) {
  if (!fabric) return;
  throw base::ConfigError(
      "links are emulated between threads, and for one rank alone by the loopback backend: use one "
      "of the two, or give no fabric; real networks are measured with MPI");
}

}  // namespace weft::comm
