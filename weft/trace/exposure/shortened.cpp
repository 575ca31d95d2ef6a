#include "weft/trace/exposure/shortened.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "weft/base/text.h"

namespace weft::trace {
namespace {

using base::text;

constexpr double kLongestMs = 1e9;  // eleven days
constexpr double kNear = 1e-6;      // relative to the step

bool is_one_run(std::span<const Timeline> timelines) {
  std::optional<int> run;
  for (const Timeline& timeline : timelines) {
    for (const Span& span : timeline.spans) {
      if (run.value_or(span.run) != span.run) return false;
      run = span.run;
    }
  }
  return true;
}

}  // namespace

Interval shown_time(std::span<const Timeline> timelines) {
  Interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const Timeline& timeline : timelines) {
    for (const Span& span : timeline.spans) {
      all = {std::min(all.begin, span.begin_ns), std::max(all.end, span.end_ns)};
    }
  }
  return all.begin <= all.end ? all : Interval{};
}

std::string complaint_about(const Shortened& shortened,
                            std::span<const Timeline> timelines,
                            double step_ms) {
  const std::int64_t left = shortened.micro_batches - shortened.shown;
  if (!shortened.is_short()) {
    if (left == 0) return "";
    return text("it shows {} of {} micro-batches and does not say what stands for the others",
                shortened.shown,
                shortened.micro_batches);
  }
  if (shortened.shown < 1 || left < shortened.repeated) {
    return text("a part cannot be there {} times more where {} of {} micro-batches are shown",
                shortened.repeated,
                shortened.shown,
                shortened.micro_batches);
  }
  if (!is_one_run(timelines)) return "a part is repeated, and there is more than one step";
  const Interval all = shown_time(timelines);
  const Interval& steady = shortened.steady;
  if (steady.begin < all.begin || steady.end <= steady.begin || steady.end > all.end) {
    return text("the part that is repeated ({:.6g} to {:.6g} ms) is not in the timeline",
                static_cast<double>(steady.begin) / 1e6,
                static_cast<double>(steady.end) / 1e6);
  }
  const double hidden =
      static_cast<double>(shortened.repeated) * static_cast<double>(steady.end - steady.begin);
  const double whole_ms = (static_cast<double>(all.end - all.begin) + hidden) / 1e6;
  if (whole_ms <= kLongestMs && std::abs(step_ms - whole_ms) <= kNear * whole_ms) return "";
  return text("the step is to take {:.6g} ms, and with what is repeated it takes {:.6g} ms",
              step_ms,
              whole_ms);
}

}  // namespace weft::trace
