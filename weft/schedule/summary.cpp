#include "weft/schedule/summary.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "weft/base/text.h"

namespace weft::schedule {
namespace {

// From a turn's first node to its last; sends, receives and weight gradients may stand elsewhere.
struct Stretch {
  bool is_forward = false;
  int micro_batch = 0;
  int chunk = 0;
  std::size_t begin = 0, end = 0;
};

bool counts(const Node& node) {
  const bool moves = node.direction == Direction::F || node.direction == Direction::D;
  return moves && !is_exchange(node);
}

std::vector<Stretch> stretches_of(const Graph& graph, const Anatomy& anatomy) {
  std::map<std::tuple<bool, int, int>, Stretch> found;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    if (!counts(node)) continue;
    const bool is_forward = node.direction == Direction::F;
    const int chunk = chunk_of(anatomy, node).stage / anatomy.pp;
    const auto [at, is_new] = found.try_emplace({is_forward, node.micro_batch, chunk},
                                                Stretch{.is_forward = is_forward,
                                                        .micro_batch = node.micro_batch,
                                                        .chunk = chunk,
                                                        .begin = i,
                                                        .end = i});
    at->second.end = i;
  }
  std::vector<Stretch> stretches;
  for (const auto& [key, stretch] : found) stretches.push_back(stretch);
  std::ranges::sort(stretches, {}, &Stretch::begin);
  return stretches;
}

std::string name(const Stretch& stretch) {
  return base::text("{}{}.{}", stretch.is_forward ? 'F' : 'B', stretch.micro_batch, stretch.chunk);
}

}  // namespace

std::string summary(const Graph& graph, const Anatomy& anatomy) {
  const std::vector<Stretch> stretches = stretches_of(graph, anatomy);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const bool beside = i + 1 < stretches.size() && stretches[i + 1].begin < stretches[i].end;
    if (!beside) {
      words.push_back(name(stretches[i]));
      continue;
    }
    const Stretch& first = stretches[i].is_forward ? stretches[i] : stretches[i + 1];
    const Stretch& second = stretches[i].is_forward ? stretches[i + 1] : stretches[i];
    words.push_back(base::text("[{}|{}]", name(first), name(second)));
    ++i;
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace weft::schedule
