#include "weft/schedule/text/text.h"

#include <map>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/schedule/fault.h"
#include "weft/schedule/text/quote.h"

namespace weft::schedule {
namespace {

std::optional<Lane> parse_lane(std::string_view name) {
  for (int i = 0; i < kLanes; ++i) {
    if (word(static_cast<Lane>(i)) == name) return static_cast<Lane>(i);
  }
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& part : base::split(line, ' ')) {
    if (!part.empty()) words.push_back(std::move(part));
  }
  return words;
}

// Line of a graph; waits by name.
struct Line {
  Lane lane = Lane::Compute;
  Node node;
  std::vector<Node> waits;
};

Line parse_line(const std::vector<std::string>& words) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw base::ConfigError(what);
  };
  const std::optional<Lane> lane = parse_lane(words[0]);
  require(lane.has_value(), base::text("'{}' is not a lane", quote(words[0])));
  require(words.size() > 1, "a lane without a node");
  require(words.size() == 2 || (words[2] == "<" && words.size() > 3),
          "expected '<' and the nodes waited for");
  Line line{.lane = *lane, .node = parse_node(words[1]), .waits = {}};
  for (std::size_t i = 3; i < words.size(); ++i) line.waits.push_back(parse_node(words[i]));
  return line;
}

// Appends a line to a graph; returns its fault if the graph's earlier entries do not allow it.
std::optional<Fault> append(const Line& line, Graph& graph, std::map<Node, int>& index) {
  const int entry = static_cast<int>(graph.entries.size());
  graph.entries.push_back({.node = line.node, .lane = line.lane, .waits = {}});
  Fault fault{.what = "", .fix = "", .wrong = {{.rank = 0, .entry = entry}}};
  for (const Node& wait : line.waits) {
    const auto found = index.find(wait);
    if (found == index.end()) {
      fault.what = base::text("waits for '{}', which no earlier line issues", print(wait));
      fault.fix = "issue it in an earlier line, or remove the wait";
      fault.waits = {base::text("{} waits for {}", print(line.node), print(wait))};
      return fault;
    }
    graph.entries.back().waits.push_back(found->second);
  }
  const auto [first, is_new] = index.emplace(line.node, entry);
  if (is_new) return std::nullopt;
  fault.what = base::text("{} is issued twice", print(line.node));
  fault.fix = "remove one of its two lines";
  fault.beside = {{.rank = 0, .entry = first->second}};
  return fault;
}

}  // namespace

std::string print(const Graph& graph) {
  std::string text;
  for (const Entry& entry : graph.entries) {
    text += base::text("{:<8} {}", word(entry.lane), print(entry.node));
    if (!entry.waits.empty()) text += " <";
    for (const int wait : entry.waits) {
      (text += ' ') += print(graph.entries[static_cast<std::size_t>(wait)].node);
    }
    text += '\n';
  }
  return text;
}

Graph parse_graph(std::string_view text) {
  Graph graph;
  std::map<Node, int> index;
  int number = 0;
  for (const std::string& line : base::split(text, '\n')) {
    ++number;
    const std::vector<std::string> words = words_of(base::trim(line));
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto fail = [&](std::string_view what, const std::string& picture) {
      throw base::ConfigError(
          base::text("schedule line {}: {}: '{}'{}", number, what, quote(line), picture));
    };
    Line read;
    try {
      read = parse_line(words);
    } catch (const base::ConfigError& error) {
      fail(error.what(), "");
    }
    if (const std::optional<Fault> fault = append(read, graph, index)) {
      fail(fault->what, '\n' + draw(*fault, {&graph}));
    }
  }
  return graph;
}

}  // namespace weft::schedule
