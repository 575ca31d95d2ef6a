// Numbers of a legal run that advice uses.
#pragma once

#include <cstdint>

#include "weft/config/config.h"

namespace weft::rules {

// GPUs per NVLink domain, in a rack of GB200 or later.
inline constexpr std::int64_t kRackDomain = 72;

struct RunFacts {
  std::int64_t tp = 1, pp = 1, vpp = 1, ep = 1, etp = 1;
  std::int64_t micro_batches = 1;
  std::int64_t machines = 1;
  std::int64_t domain = 1;  // ranks within one NVLink domain
};
RunFacts facts_of(const config::Config& config);

bool is_blackwell(const config::Config& config);

}  // namespace weft::rules
