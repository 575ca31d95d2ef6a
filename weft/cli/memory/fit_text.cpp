#include "weft/cli/memory/fit_text.h"

#include <algorithm>

#include "weft/base/text.h"

namespace weft::cli {
namespace {

using base::text;
using measure::Saving;

constexpr double kNoTime = 1e-4;  // share of a step
constexpr const char* kSmaller =
    "use more ranks, a smaller train.micro_batch_size or a smaller model";
constexpr std::string_view kNotBuilt = "not built yet: ";

// Spreading ranks helps only between machines: more ranks on one machine need more of its memory.
const char* smaller(const MemoryReport& report) {
  const bool is_here = report.room.host && report.room.host->memory == measure::RanksIn::Host;
  return is_here ? kSmallerHere : kSmaller;
}

std::string bytes_text(std::size_t bytes) { return base::human_bytes(static_cast<double>(bytes)); }

std::string time_text(double seconds, const MemoryReport& report) {
  const double step = report.forecast.step_seconds;
  if (seconds <= kNoTime * step) return "no time";
  if (seconds >= step) return text("{:.1f} times the step", seconds / step);
  return text("{:.2g} % of the step", 100 * seconds / step);
}

// Reason why nothing makes it fit; empty: something does, or no search was made.
std::string why_nothing_fits(const MemoryReport& report) {
  if (report.fits() || report.fit) return "";
  if (measure::is_hopeless(report.forecast, report.room)) {
    return text("weights and gradients alone are too large, which no saving changes: {}",
                smaller(report));
  }
  return report.savings ? text("no saving listed here makes it fit: {}", smaller(report)) : "";
}

// Reason for naming several savings.
const char* why_several(const MemoryReport& report) {
  const bool one_would =
      report.savings && std::ranges::any_of(report.savings->worthwhile, [&](const Saving& saving) {
        return !saving.changes_numerics() &&
               measure::overrun(saving.forecast, report.room).is_none();
      });
  return one_would ? "several savings together cost less than the one that would suffice"
                   : "no single saving suffices";
}

}  // namespace

std::string not_counted_text(const measure::MemoryForecast& forecast) {
  if (forecast.left_out.empty()) return "";
  std::vector<std::string_view> parts;
  for (const std::string_view part : forecast.left_out) {
    parts.push_back(part.starts_with(kNotBuilt) ? part.substr(kNotBuilt.size()) : part);
  }
  return text("; not counted: {}", fmt::join(parts, ", "));
}

std::string saving_line(const Saving& saving, const MemoryReport& report) {
  return text("{} frees {} for {}{}: {}",
              saving.name,
              bytes_text(static_cast<std::size_t>(saving.bytes)),
              time_text(saving.seconds, report),
              saving.changes_numerics() ? ", rounding otherwise" : "",
              fmt::join(saving.words, " "));
}

std::string fit_line(const MemoryReport& report) {
  if (report.fits() || !report.fit) return why_nothing_fits(report);
  const measure::Fit& fit = *report.fit;
  const std::string what = text("({}, {}): {}",
                                bytes_text(fit.peak_bytes),
                                time_text(fit.seconds, report),
                                fmt::join(fit.words, " "));
  if (fit.names.size() == 1) return text("{} alone makes it fit {}", fit.names.front(), what);
  return text("{}; it fits with {} {}", why_several(report), fmt::join(fit.names, ", "), what);
}

std::string fit_lines(const MemoryReport& report) {
  if (report.fits()) return "";
  if (!report.fit) {
    const std::string why = why_nothing_fits(report);
    return why.empty() ? "" : text("\n{}\n", why);
  }
  const measure::Fit& fit = *report.fit;
  std::string all = text("\nwhat makes it fit: {} at the peak, for {}{}\n",
                         bytes_text(fit.peak_bytes),
                         time_text(fit.seconds, report),
                         fit.names.size() == 1 ? "" : text("; {}", why_several(report)));
  for (const std::string& name : fit.names) all += text("  {}\n", name);
  return all + text("  to type: {}\n", fmt::join(fit.words, " "));
}

}  // namespace weft::cli
