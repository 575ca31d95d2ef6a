#include "weft/cli/memory/byte_meter.h"

#include <algorithm>

#include "weft/base/text.h"

namespace weft::cli {

ByteMeter::ByteMeter(std::uint64_t all)
    : all_(static_cast<double>(std::max<std::uint64_t>(1, all))) {}

void ByteMeter::at(std::uint64_t bytes) {
  if (stop_.load()) throw Stopped();
  const double share = static_cast<double>(bytes) / all_;
  const int now = static_cast<int>(share * 1000);
  if (now == drawn_) return;
  drawn_ = now;
  line_.show(
      base::text("{} {:5.1f} % of {}", bar(share, 24), share * 100, base::human_bytes(all_)));
}

}  // namespace weft::cli
