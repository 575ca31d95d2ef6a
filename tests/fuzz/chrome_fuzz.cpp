// Any bytes as a Chrome trace: read, with a wall for every moment, or rejected with ConfigError.
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "weft/base/error.h"
#include "weft/trace/chrome/chrome_read.h"
#include "weft/trace/exposure/device_exposure.h"

namespace {

void require_sum(const std::vector<weft::trace::RankWalls>& ranks) {
  for (const weft::trace::RankWalls& rank : ranks) {
    const weft::trace::Walls& walls = rank.walls;
    const double sum = walls.compute + walls.host + walls.communication + walls.bubble +
                       walls.late + walls.copy + walls.idle + walls.slowed;
    if (std::abs(sum - walls.step) > 1e-6 * walls.step + 1e-6) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::istringstream stream(std::string(reinterpret_cast<const char*>(data), size));
  try {
    const weft::trace::ChromeTrace trace = weft::trace::parse_chrome(stream, "fuzz");
    const auto shared = weft::trace::Clocks::Shared;
    require_sum(weft::trace::walls_of(trace.timelines, shared, trace.shortened));
    weft::trace::analyse(trace.timelines, shared, trace.shortened);
    if (trace.devices) require_sum(weft::trace::analyse_devices(*trace.devices).walls);
  } catch (const weft::base::ConfigError&) {
  }
  return 0;
}
