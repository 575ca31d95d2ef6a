#include "weft/cli/timeline_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "weft/base/text.h"
#include "weft/schedule/meeting.h"
#include "weft/trace/span.h"

namespace weft::cli {
namespace {

namespace sim = exec::sim;
using schedule::Direction;
using schedule::Entry;

constexpr std::string_view kLetters = "FRBWofbs";

char letter_of(const Entry& entry) {
  const bool travels = schedule::is_meeting(entry);
  switch (entry.node.direction) {
    case Direction::F:
      return travels ? 'f' : 'F';
    case Direction::R:
      return travels ? 'f' : 'R';
    case Direction::D:
      return travels ? 'b' : 'B';
    case Direction::W:
      return travels ? 'b' : 'W';
    case Direction::None:
      break;
  }
  return travels ? 's' : 'o';
}

// One lane, or several of one kind, cut into slices: how long each letter held each slice.
class Row {
 public:
  Row(std::int64_t step_ns, int columns)
      : slice_ns_(std::max(1.0, static_cast<double>(step_ns) / columns)),
        held_(static_cast<std::size_t>(columns)) {}

  void add(char letter, sim::Interval interval) {
    const auto begin = static_cast<double>(interval.begin_ns);
    const auto end = static_cast<double>(interval.end_ns);
    const std::size_t last = std::min(held_.size(), at(std::ceil(end / slice_ns_)));
    for (std::size_t i = at(begin / slice_ns_); i < last; ++i) {
      const double from = slice_ns_ * static_cast<double>(i);
      held_[i][kLetters.find(letter)] += std::min(end, from + slice_ns_) - std::max(begin, from);
    }
  }

  // Compute is shown where it held most of a slice; what travels, wherever it did at all.
  std::string text(bool any) const {
    std::string letters;
    for (const Slice& slice : held_) {
      double idle = slice_ns_;
      for (const double held : slice) idle -= held;
      const auto most = std::ranges::max_element(slice);
      letters += *most > 0 && (any || *most >= idle) ? kLetters[at(most - slice.begin())] : '.';
    }
    return letters;
  }

 private:
  using Slice = std::array<double, kLetters.size()>;
  template <typename Number>
  static std::size_t at(Number i) {
    return static_cast<std::size_t>(i);
  }

  double slice_ns_;
  std::vector<Slice> held_;
};

// "compute", "ep", "dp", and "pp" for all four lanes of pipelining; empty: not shown.
std::string row_name(const Entry& entry) {
  if (entry.lane == schedule::Lane::Compute) return std::string(trace::kComputeLane);
  return std::string(trace::communication_kind(schedule::word(entry.lane)));
}

// The work of an entry, without what it waited for.
sim::Interval work_of(const sim::Step& step, int rank, int entry, sim::Interval interval) {
  const std::int64_t cost_ns = std::llround(step.cost(rank, entry).seconds * 1e9);
  interval.begin_ns = std::max(interval.begin_ns, interval.end_ns - cost_ns);
  return interval;
}

std::map<std::pair<int, std::string>, Row> rows_of(const sim::Step& step,
                                                   const sim::Result& result,
                                                   int rank,
                                                   int columns) {
  std::map<std::pair<int, std::string>, Row> rows;  // in the order of a trace
  const auto& entries = step.graphs[static_cast<std::size_t>(rank)]->entries;
  const auto& intervals = result.entries[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name = row_name(entries[i]);
    if (name.empty()) continue;
    const int position = name == trace::kComputeLane ? -1 : trace::lane_position(name);
    Row& row = rows.try_emplace({position, name}, result.step_ns, columns).first->second;
    row.add(letter_of(entries[i]), work_of(step, rank, static_cast<int>(i), intervals[i]));
  }
  return rows;
}

}  // namespace

std::string timeline_grid(const sim::Step& step, const sim::Result& result, int columns) {
  std::string text;
  for (int rank = 0; static_cast<std::size_t>(rank) < step.graphs.size(); ++rank) {
    std::string label = base::text("rank {}", rank);
    for (const auto& [key, row] : rows_of(step, result, rank, columns)) {
      text +=
          base::text("{:<8} {:<8} |{}|\n", label, key.second, row.text(key.second != "compute"));
      label.clear();
    }
  }
  const std::string end = base::text("{:.4g} ms", result.step_seconds() * 1e3);
  return text + base::text("{:<19}0{:>{}}\n", "", end, columns - 1);
}

}  // namespace weft::cli
