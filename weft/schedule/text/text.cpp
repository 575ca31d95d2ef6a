#include "weft/schedule/text/text.h"

#include <map>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/text.h"
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

// `index`: line of each earlier node.
Entry parse_entry(const std::vector<std::string>& words, const std::map<Node, int>& index) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw base::ConfigError(what);
  };
  const std::optional<Lane> lane = parse_lane(words[0]);
  require(lane.has_value(), base::text("'{}' is not a lane", quote(words[0])));
  require(words.size() > 1, "a lane without a node");
  require(words.size() == 2 || (words[2] == "<" && words.size() > 3),
          "expected '<' and the nodes waited for");
  Entry entry{.node = parse_node(words[1]), .lane = *lane, .waits = {}};
  for (std::size_t i = 3; i < words.size(); ++i) {
    const auto found = index.find(parse_node(words[i]));
    require(found != index.end(),
            base::text("waits for '{}', which no earlier line issues", words[i]));
    entry.waits.push_back(found->second);
  }
  return entry;
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
    try {
      Entry entry = parse_entry(words, index);
      if (!index.emplace(entry.node, static_cast<int>(graph.entries.size())).second) {
        throw base::ConfigError(base::text("{} is issued twice", print(entry.node)));
      }
      graph.entries.push_back(std::move(entry));
    } catch (const base::ConfigError& error) {
      throw base::ConfigError(
          base::text("schedule line {}: {}: '{}'", number, error.what(), quote(line)));
    }
  }
  return graph;
}

}  // namespace weft::schedule
