#include "weft/cli/terminal/time_left.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"

namespace weft::cli {

namespace {
constexpr std::size_t kRecent = 50;
}  // namespace

void TimeLeft::step_over(double seconds) {
  ends_.push_back(seconds);
  if (ends_.size() > kRecent + 1) ends_.pop_front();
}

std::optional<double> TimeLeft::seconds_for(std::int64_t steps) const {
  if (ends_.size() < 2) return std::nullopt;
  const double step = (ends_.back() - ends_.front()) / static_cast<double>(ends_.size() - 1);
  return step * static_cast<double>(steps);
}

std::string duration_text(double seconds) {
  const double known = std::isfinite(seconds) ? seconds : 0.0;
  const auto whole = static_cast<std::int64_t>(std::clamp(std::round(known), 0.0, 1e12));
  constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  if (whole < kMinute) return base::text("{} s", whole);
  if (whole < kHour) return base::text("{} min {} s", whole / kMinute, whole % kMinute);
  if (whole < kDay) return base::text("{} h {} min", whole / kHour, whole % kHour / kMinute);
  return base::text("{} d {} h", whole / kDay, whole % kDay / kHour);
}

}  // namespace weft::cli
