#include "weft/schedule/fault.h"

#include <algorithm>
#include <map>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/text.h"

namespace weft::schedule {
namespace {

using base::at;

constexpr std::size_t kMostRows = 12, kMostNodes = 9, kFewestNodes = 2;
constexpr std::size_t kMostWidth = 100;
constexpr std::size_t kMostWaits = 12;

std::string short_name(const Node& node) {
  constexpr std::size_t kEnd = 7;
  const std::string name = print(node);
  if (name.size() <= 2 * kEnd + 2) return name;
  return name.substr(0, kEnd) + ".." + name.substr(name.size() - kEnd);
}

// Node in the picture of a rank.
struct Cell {
  Lane lane = Lane::Compute;
  std::string text;
};

// Cells of a rank by twice the place in its order: an entry has an odd number, so that a missing
// node has the even number before its successor.
using Cells = std::map<int, Cell>;

int number_of(int entry) { return 2 * entry + 1; }

// First and last of more marks than the picture has nodes.
std::vector<int> bounded(std::vector<int> marks, std::size_t most) {
  if (marks.size() <= most) return marks;
  const auto head = static_cast<std::ptrdiff_t>((most + 1) / 2);
  const auto tail = static_cast<std::ptrdiff_t>(most / 2);
  marks.erase(marks.begin() + head, marks.end() - tail);
  return marks;
}

// Cells of one rank: its marked nodes, then their nearest neighbours, up to `most`.
class RankPicture {
 public:
  RankPicture(const Fault& fault, const Graph& graph, int rank, std::size_t most) : graph_(graph) {
    std::map<int, std::string> around;  // mark by number: '[' or '>'
    for (const Position& place : fault.beside) mark(place, rank, "[]", around);
    for (const Position& place : fault.wrong) mark(place, rank, "><", around);
    if (fault.missing && rank == 0) around[2 * fault.missing->before] = "><";
    std::vector<int> marked;
    for (const auto& [number, signs] : around) marked.push_back(number);
    marked = bounded(std::move(marked), most);
    for (const int number : marked) {
      const Entry& entry = number % 2 == 0 ? fault.missing->entry : graph.entries[at(number / 2)];
      const std::string& signs = around[number];
      cells_[number] = {entry.lane, signs[0] + short_name(entry.node) + signs[1]};
    }
    const int entries = static_cast<int>(graph.entries.size());
    for (int far = 1; far <= static_cast<int>(most) && cells_.size() < most; ++far) {
      for (const int number : marked) {
        // An even number lies between two entries.
        const int shift = number % 2 == 0 ? 1 : 0;
        add_neighbour(number - 2 * far + shift, entries, most);
        add_neighbour(number + 2 * far - shift, entries, most);
      }
    }
  }

  const Cells& cells() const { return cells_; }

  std::set<Lane> lanes() const {
    std::set<Lane> lanes;
    for (const auto& [number, cell] : cells_) lanes.insert(cell.lane);
    return lanes;
  }

  // Text of each column in the row of a lane; gaps are in every row.
  std::vector<std::string> row(Lane lane) const {
    std::vector<std::string> texts;
    int last = -1;
    for (const auto& [number, cell] : cells_) {
      if (last >= 0 && number - last > 2) texts.push_back("...");
      texts.push_back(cell.lane == lane ? cell.text : "");
      last = number;
    }
    return texts;
  }

 private:
  static void mark(const Position& place,
                   int rank,
                   const std::string& signs,
                   std::map<int, std::string>& around) {
    if (place.rank == rank) around[number_of(place.entry)] = signs;
  }

  void add_neighbour(int number, int entries, std::size_t most) {
    if (number < 0 || number / 2 >= entries || cells_.size() >= most) return;
    const Entry& entry = graph_.entries[at(number / 2)];
    cells_.try_emplace(number, Cell{entry.lane, short_name(entry.node)});
  }

  const Graph& graph_;
  Cells cells_;
};

struct Row {
  std::string label;
  std::vector<std::string> texts;
};

struct Grid {
  std::vector<Row> rows;
  std::size_t ranks_left_out = 0;

  std::vector<std::size_t> widths() const {
    std::vector<std::size_t> widths;
    for (const Row& row : rows) {
      widths.resize(std::max(widths.size(), row.texts.size()));
      for (std::size_t i = 0; i < row.texts.size(); ++i) {
        widths[i] = std::max(widths[i], row.texts[i].size());
      }
    }
    return widths;
  }

  std::size_t label_width() const {
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.label.size());
    return width;
  }

  std::size_t width() const {
    std::size_t all = label_width();
    for (const std::size_t width : widths()) all += 2 + width;
    return all;
  }

  std::string text() const {
    const std::vector<std::size_t> columns = widths();
    std::string all = base::text("{:<{}}  issued in this order ->\n", "", label_width());
    for (const Row& row : rows) {
      std::string line = base::text("{:<{}}", row.label, label_width());
      for (std::size_t i = 0; i < row.texts.size(); ++i) {
        line += base::text("  {:<{}}", row.texts[i], columns[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      all += line + '\n';
    }
    if (ranks_left_out > 0) {
      all += base::text("... and {}\n",
                        base::counted(static_cast<std::int64_t>(ranks_left_out), "more rank"));
    }
    return all;
  }
};

std::set<int> ranks_of(const Fault& fault) {
  std::set<int> ranks;
  for (const auto* places : {&fault.wrong, &fault.beside}) {
    for (const Position& place : *places) ranks.insert(place.rank);
  }
  if (fault.missing) ranks.insert(0);
  return ranks;
}

Grid grid_of(const Fault& fault, const std::vector<const Graph*>& graphs, std::size_t most) {
  Grid grid;
  for (const int rank : ranks_of(fault)) {
    const RankPicture picture(fault, *graphs[at(rank)], rank, most);
    const std::set<Lane> lanes = picture.lanes();
    if (grid.rows.size() + lanes.size() > kMostRows) {
      ++grid.ranks_left_out;
      continue;
    }
    std::string of_rank = graphs.size() > 1 ? base::text("rank {:<4}", rank) : "";
    for (const Lane lane : lanes) {
      grid.rows.push_back({.label = of_rank + std::string(word(lane)), .texts = picture.row(lane)});
      of_rank.assign(of_rank.size(), ' ');
    }
  }
  return grid;
}

std::string wait_line(const Entry& entry, const Graph& graph) {
  constexpr std::size_t kMostNames = 4;
  std::vector<std::string> names;
  for (const int wait : entry.waits) {
    const bool is_entry = wait >= 0 && at(wait) < graph.entries.size();
    names.push_back(is_entry ? print(graph.entries[at(wait)].node) : base::text("entry {}", wait));
  }
  if (names.empty()) {
    return base::text("{} waits only for earlier nodes of lane {}",
                      print(entry.node),
                      word(entry.lane));
  }
  if (names.size() > kMostNames) {
    const std::size_t more = names.size() - kMostNames;
    names.resize(kMostNames);
    names.push_back(base::text("{} more", more));
  }
  return base::text("{} waits for {}", print(entry.node), fmt::join(names, ", "));
}

std::vector<std::string> wait_lines(const Fault& fault, const std::vector<const Graph*>& graphs) {
  std::vector<std::string> lines = fault.waits;
  if (lines.empty()) {
    for (const auto* places : {&fault.wrong, &fault.beside}) {
      for (const Position& place : *places) {
        const Graph& graph = *graphs[at(place.rank)];
        const std::string of_rank = graphs.size() > 1 ? base::text("rank {}: ", place.rank) : "";
        std::string line = of_rank + wait_line(graph.entries[at(place.entry)], graph);
        if (lines.empty() || lines.back() != line) lines.push_back(std::move(line));
      }
    }
  }
  if (lines.size() > kMostWaits) {
    const std::size_t more = lines.size() - kMostWaits;
    lines.resize(kMostWaits);
    lines.push_back(base::text("... and {} more waits", more));
  }
  return lines;
}

}  // namespace

std::string draw(const Fault& fault, const std::vector<const Graph*>& graphs) {
  std::size_t most = kMostNodes;
  Grid grid = grid_of(fault, graphs, most);
  while (most > kFewestNodes && (grid.width() > kMostWidth || grid.ranks_left_out > 0)) {
    grid = grid_of(fault, graphs, --most);
  }
  std::string all = grid.text();
  for (const std::string& line : wait_lines(fault, graphs)) all += line + '\n';
  return all + "fix: " + fault.fix;
}

std::vector<std::string> complaints_of(const std::vector<Fault>& faults,
                                       const std::vector<const Graph*>& graphs) {
  std::vector<std::string> complaints;
  for (const Fault& fault : faults) complaints.push_back(fault.what);
  if (!faults.empty()) complaints.front() += '\n' + draw(faults.front(), graphs);
  return complaints;
}

}  // namespace weft::schedule
