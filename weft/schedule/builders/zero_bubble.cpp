#include <algorithm>

#include "weft/base/check.h"
#include "weft/schedule/builders/orders.h"

namespace weft::schedule {

std::vector<std::vector<Turn>> zero_bubble_rounds(const PipelineShape& shape) {
  CHECK(shape.vpp == 1, "zero bubble with {} chunks a rank", shape.vpp);
  const bool sends_gradients = shape.pp_rank > 0;
  const int all = shape.micro_batches;
  const int ahead = std::min(shape.pp - shape.pp_rank - 1, all);
  std::vector<std::vector<Turn>> rounds;
  int weighed = 0;  // micro-batches with finished weight gradients
  const auto add = [&](Direction direction, int micro_batch) {
    rounds.push_back({{.direction = direction, .chunk = 0, .micro_batch = micro_batch}});
  };
  for (int i = 0; i < all + ahead; ++i) {
    if (i < all) add(Direction::F, i);
    if (i < ahead) continue;
    add(Direction::D, i - ahead);
    const bool is_full = i + 1 - weighed == shape.pp, drains = i + 1 >= all;
    if (sends_gradients && (is_full || drains)) add(Direction::W, weighed++);
  }
  while (sends_gradients && weighed < all) add(Direction::W, weighed++);
  return rounds;
}

}  // namespace weft::schedule
