#include "weft/cli/terminal/timeline_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "weft/base/text.h"
#include "weft/schedule/meeting.h"
#include "weft/trace/span.h"

namespace weft::cli {
namespace {

namespace sim = exec::sim;
using schedule::Direction;
using schedule::Entry;

constexpr std::string_view kLetters = "FRBWofbsOI";
constexpr int kComputeRow = -1;  // index of the compute row

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
    case Direction::O:
      return 'O';
    case Direction::I:
      return 'I';
    case Direction::None:
      break;
  }
  return travels ? 's' : 'o';
}

// One lane, or several of one kind, in time slices: the time of each letter in each slice.
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
    work_.push_back(interval);
  }

  // Intersection: times at which both rows worked.
  static Row both(Row& one, Row& other) {
    Row row = other;
    row.work_.clear();
    for (Slice& slice : row.held_) slice = {};
    for (Row* each : {&one, &other}) {
      std::ranges::sort(each->work_, {}, &sim::Interval::begin_ns);
    }
    for (std::size_t i = 0, j = 0; i < one.work_.size() && j < other.work_.size();) {
      const sim::Interval &a = one.work_[i], &b = other.work_[j];
      const std::int64_t begin = std::max(a.begin_ns, b.begin_ns);
      const std::int64_t end = std::min(a.end_ns, b.end_ns);
      if (begin < end) row.add('o', {.begin_ns = begin, .end_ns = end});
      (a.end_ns < b.end_ns ? i : j) += 1;
    }
    return row;
  }

  double slice_ns() const { return slice_ns_; }
  double held(std::size_t column) const {
    const Slice& slice = held_[column];
    return std::accumulate(slice.begin(), slice.end(), 0.0);
  }
  // Letter with the most time.
  char letter(std::size_t column) const {
    const Slice& slice = held_[column];
    return kLetters[at(std::ranges::max_element(slice) - slice.begin())];
  }

 private:
  using Slice = std::array<double, kLetters.size()>;
  template <typename Number>
  static std::size_t at(Number i) {
    return static_cast<std::size_t>(i);
  }

  double slice_ns_;
  std::vector<Slice> held_;
  std::vector<sim::Interval> work_;
};

// Row of an entry: "compute", "ep", "dp", "pp" for all four pipeline lanes, "copy" and "copy_in"
// for transfers to and from the host; empty: not shown.
std::string row_name(const Entry& entry) {
  if (entry.lane == schedule::Lane::Compute) return std::string(trace::kComputeLane);
  const Direction direction = entry.node.direction;
  const bool is_offload = direction == Direction::O || direction == Direction::I;
  if (is_offload) return std::string(schedule::word(entry.lane));
  return std::string(trace::communication_kind(schedule::word(entry.lane)));
}

// Work of an entry without its waits.
sim::Interval work_of(const sim::SimulatedStep& step, int rank, int entry, sim::Interval interval) {
  const std::int64_t cost_ns = std::llround(step.cost(rank, entry).seconds * 1e9);
  interval.begin_ns = std::max(interval.begin_ns, interval.end_ns - cost_ns);
  return interval;
}

std::map<std::pair<int, std::string>, Row> rows_of(const sim::SimulatedStep& step,
                                                   const sim::Result& result,
                                                   int rank,
                                                   int columns) {
  std::map<std::pair<int, std::string>, Row> rows;  // in the order of a trace
  const auto& entries = step.graphs[static_cast<std::size_t>(rank)]->entries;
  const auto& intervals = result.entries[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name = row_name(entries[i]);
    if (name.empty()) continue;
    const int position = name == trace::kComputeLane ? kComputeRow : trace::lane_position(name);
    Row& row = rows.try_emplace({position, name}, result.step_ns, columns).first->second;
    row.add(letter_of(entries[i]), work_of(step, rank, static_cast<int>(i), intervals[i]));
  }
  return rows;
}

// Letters of a rank's rows. Compute is shown if it had most of a slice, communication if it ran at
// all. Both are shown only if they ran at the same time; of two that alternated in a slice the
// longer is shown.
std::map<std::string, std::string> letters_of(std::map<std::pair<int, std::string>, Row>& rows,
                                              int columns) {
  const auto compute = rows.find({kComputeRow, std::string(trace::kComputeLane)});
  std::map<std::string, std::string> letters;
  std::string worked(static_cast<std::size_t>(columns), '.');
  if (compute != rows.end()) {
    const Row& row = compute->second;
    for (std::size_t i = 0; i < worked.size(); ++i) {
      const double held = row.held(i);
      if (held > 0 && 2 * held >= row.slice_ns()) worked[i] = row.letter(i);
    }
  }
  for (auto& [key, row] : rows) {
    if (key.second == trace::kComputeLane) continue;
    std::string& line = letters[key.second].assign(worked.size(), '.');
    const Row together = compute == rows.end() ? row : Row::both(compute->second, row);
    for (std::size_t i = 0; i < line.size(); ++i) {
      const double travelled = row.held(i);
      if (travelled <= 0) continue;
      const bool beside = 2 * together.held(i) >= travelled;
      const bool longer = compute == rows.end() || travelled > compute->second.held(i);
      if (beside || longer) line[i] = row.letter(i);
      if (!beside && longer) worked[i] = '.';
    }
  }
  if (compute != rows.end()) letters[std::string(trace::kComputeLane)] = worked;
  return letters;
}

}  // namespace

std::string timeline_grid(const sim::SimulatedStep& step, const sim::Result& result, int columns) {
  std::string text;
  for (int rank = 0; static_cast<std::size_t>(rank) < step.graphs.size(); ++rank) {
    std::string label = base::text("rank {}", rank);
    auto rows = rows_of(step, result, rank, columns);
    const std::map<std::string, std::string> letters = letters_of(rows, columns);
    for (const auto& [key, row] : rows) {
      text += base::text("{:<8} {:<8} |{}|\n", label, key.second, letters.at(key.second));
      label.clear();
    }
  }
  const std::string end = base::text("{:.4g} ms", result.step_seconds() * 1e3);
  return text + base::text("{:<19}0{:>{}}\n", "", end, columns - 1);
}

}  // namespace weft::cli
