#include "weft/schedule/text/summary.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "weft/base/text.h"
#include "weft/schedule/dependencies.h"

namespace weft::schedule {
namespace {

// Extent of a turn from its first node to its last; sends, receives and single weight gradients may
// lie elsewhere.
struct Stretch {
  char letter = 'F';
  int micro_batch = 0;
  int chunk = 0;
  std::size_t begin = 0, end = 0;
};

using Found = std::map<std::tuple<Direction, int, int>, Stretch>;

void add(Found& found, Direction direction, const Node& node, int chunk, std::size_t i) {
  const auto [at, is_new] =
      found.try_emplace({direction, node.micro_batch, chunk},
                        Stretch{.letter = direction == Direction::F ? 'F' : 'B',
                                .micro_batch = node.micro_batch,
                                .chunk = chunk,
                                .begin = i,
                                .end = i});
  at->second.end = i;
}

// Weight gradients that all come after their backward have a turn of their own.
void take_put_off(Found& found, const Found& weights, std::vector<Stretch>& stretches) {
  for (const auto& [key, stretch] : weights) {
    Stretch& backward = found.at({Direction::D, stretch.micro_batch, stretch.chunk});
    if (stretch.begin < backward.end) continue;
    backward.letter = 'D';
    stretches.push_back(stretch);
    stretches.back().letter = 'W';
  }
}

std::vector<Stretch> stretches_of(const Graph& graph, const Anatomy& anatomy) {
  Found found, weights;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    const bool moves = node.direction == Direction::F || node.direction == Direction::D;
    if (moves && !is_exchange(node) && node.piece != Piece::Embed) {  // the embedding may run ahead
      add(found, node.direction, node, chunk_of(anatomy, node).index, i);
    } else if (may_be_delayed(anatomy.flow, node) && !frees_memory_for_backward(anatomy, node)) {
      add(weights, Direction::W, node, chunk_of(anatomy, node).index, i);
    }
  }
  std::vector<Stretch> stretches;
  take_put_off(found, weights, stretches);
  for (const auto& [key, stretch] : found) stretches.push_back(stretch);
  std::ranges::sort(stretches, {}, &Stretch::begin);
  return stretches;
}

std::string name(const Stretch& stretch) {
  return base::text("{}{}.{}", stretch.letter, stretch.micro_batch, stretch.chunk);
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
    const Stretch& first = stretches[i].letter == 'F' ? stretches[i] : stretches[i + 1];
    const Stretch& second = stretches[i].letter == 'F' ? stretches[i + 1] : stretches[i];
    words.push_back(base::text("[{}|{}]", name(first), name(second)));
    ++i;
  }
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace weft::schedule
