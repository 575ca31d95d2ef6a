#include "weft/measure/bench/emulated_links.h"

#include <algorithm>
#include <cmath>

namespace weft::measure {
namespace {

constexpr double kLinkLatencySeconds = 20e-6;
constexpr double kLinkCorrection = 2;  // largest factor of one correction
constexpr double kMostOfCompute = 2;   // largest step time, in times of its compute nodes

}  // namespace

grid::Fabric links_of(double bytes_per_second) {
  const grid::Link link{.bytes_per_second = bytes_per_second,
                        .latency_seconds = kLinkLatencySeconds};
  return {.intra = link, .inter = link};
}

grid::Fabric links_for(double communication_seconds,
                       const std::function<double(const grid::Fabric&)>& seconds_over) {
  // Time falls with bandwidth, so one half of the range contains the answer.
  double slow = kSlowestLink, fast = kFastestLink;
  while (fast > 1.001 * slow) {
    const double middle = std::sqrt(slow * fast);
    (seconds_over(links_of(middle)) > communication_seconds ? slow : fast) = middle;
  }
  return links_of(fast);
}

double undisturbed_seconds(double step_seconds, double compute_seconds) {
  if (compute_seconds <= 0) return step_seconds;
  return std::min(step_seconds, kMostOfCompute * compute_seconds);
}

grid::Fabric corrected(const grid::Fabric& links,
                       const grid::Fabric& found,
                       double measured,
                       double communication_seconds) {
  // Without a compute time to compare with, use the fastest links.
  if (communication_seconds <= 0) return links_of(kFastestLink);
  const double factor =
      std::clamp(measured / communication_seconds, 1 / kLinkCorrection, kLinkCorrection);
  const double least = std::max(kSlowestLink, found.intra.bytes_per_second / kLinkCorrection);
  return links_of(std::clamp(links.intra.bytes_per_second * factor, least, kFastestLink));
}

}  // namespace weft::measure
