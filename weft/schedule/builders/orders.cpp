#include "weft/schedule/builders/orders.h"

#include <algorithm>
#include <array>
#include <deque>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::schedule {
namespace {

using base::at;

constexpr int kDown = 0, kUp = 1;  // chunks: down from the first rank, and back up to it

// Writes the rounds of one rank; each chunk takes its micro-batches in sequence.
class Rounds {
 public:
  void forward(int chunk) { rounds_.push_back({next(Direction::F, chunk)}); }
  void backward(int chunk) { rounds_.push_back({next(Direction::D, chunk)}); }
  void both(int forward_chunk) {
    const Turn forward = next(Direction::F, forward_chunk);
    rounds_.push_back({forward, next(Direction::D, kUp - forward_chunk)});
  }
  // Backward with delayed weight gradients.
  void input_gradient(int chunk) {
    backward(chunk);
    Turn weights = rounds_.back().front();
    weights.direction = Direction::W;
    put_off_.push_back(weights);
  }
  void weight_gradient() {
    rounds_.push_back({put_off_.front()});
    put_off_.pop_front();
  }
  bool has_delayed_weight_gradients() const { return !put_off_.empty(); }

  // Rounds without the first `missing` micro-batches.
  std::vector<std::vector<Turn>> take(int missing) {
    for (std::vector<Turn>& round : rounds_) {
      for (Turn& turn : round) turn.micro_batch -= missing;
      std::erase_if(round, [](const Turn& turn) { return turn.micro_batch < 0; });
    }
    std::erase_if(rounds_, [](const std::vector<Turn>& round) { return round.empty(); });
    return std::move(rounds_);
  }

 private:
  Turn next(Direction direction, int chunk) {
    std::array<int, 2>& taken = direction == Direction::F ? forwards_ : backwards_;
    return {.direction = direction, .chunk = chunk, .micro_batch = taken[at(chunk)]++};
  }

  std::vector<std::vector<Turn>> rounds_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<Turn> put_off_;
};

template <typename Do>
void times(int count, const Do& act) {
  for (int i = 0; i < count; ++i) act();
}

}  // namespace

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

std::vector<std::vector<Turn>> dual_pipe_rounds(const PipelineShape& shape) {
  CHECK(shape.vpp == 2, "DualPipeV with {} chunks a rank", shape.vpp);
  const int behind = shape.pp - 1 - shape.pp_rank, own = shape.pp_rank + 1;
  const int all = std::max(shape.micro_batches, 2 * shape.pp);
  const int middle = all - 2 * behind - own;
  Rounds rounds;
  times(2 * behind, [&] { rounds.forward(kDown); });
  times(own, [&] {
    rounds.forward(kDown);
    rounds.forward(kUp);
  });
  times(behind, [&] {
    rounds.input_gradient(kUp);
    rounds.weight_gradient();
    rounds.forward(kUp);
  });
  times(middle, [&] {
    rounds.both(kDown);
    rounds.both(kUp);
  });
  times(behind, [&] {
    rounds.backward(kUp);
    rounds.both(kUp);
  });
  for (int i = 0; i < 2 * own; ++i) {
    const int chunk = i % 2 == 0 ? kUp : kDown;
    i < own ? rounds.backward(chunk) : rounds.input_gradient(chunk);
  }
  times(behind, [&] {
    rounds.weight_gradient();
    rounds.input_gradient(kDown);
  });
  while (rounds.has_delayed_weight_gradients()) rounds.weight_gradient();
  return rounds.take(all - shape.micro_batches);
}

std::vector<Turn> dual_pipe_forwards(const PipelineShape& shape) {
  std::vector<Turn> turns;
  for (const int chunk : {kDown, kUp}) {
    for (int i = 0; i < shape.micro_batches; ++i) {
      turns.push_back({.direction = Direction::F, .chunk = chunk, .micro_batch = i});
    }
  }
  std::ranges::sort(turns, {}, [&](const Turn& turn) {
    const int stage = turn.chunk == kDown ? shape.pp_rank : 2 * shape.pp - 1 - shape.pp_rank;
    return 2 * turn.micro_batch + stage;
  });
  return turns;
}

}  // namespace weft::schedule
