#include "weft/schedule/passes/interleave.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/blocks.h"
#include "weft/derive/flops.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

constexpr int kPlaces = static_cast<int>(Place::After) + 1;

struct Layer {
  int index = kNone;
  std::array<NamedEntries, kPlaces> places;
};

// Entries of one chunk's turn in the plain order.
struct TurnEntries {
  NamedEntries before;        // arrival of input or gradient: receive, embed, head
  std::vector<Layer> layers;  // in execution order
  NamedEntries after;         // send, head, embed

  void add(NamedEntry entry) {
    if (entry.node.layer == kNone) {
      (layers.empty() ? before : after).push_back(std::move(entry));
      return;
    }
    if (layers.empty() || layers.back().index != entry.node.layer) {
      layers.push_back({.index = entry.node.layer, .places = {}});
    }
    const auto place = static_cast<std::size_t>(row_of(entry.node.piece).place);
    layers.back().places[place].push_back(std::move(entry));
  }
};

// Writes turns, merged in pairs or alone.
class Weaver {
 public:
  Weaver(DispatchBeside beside, AttentionRelease release, FirstCombine first_combine)
      : beside_(beside), release_(release), first_combine_(first_combine) {}

  void weave(TurnEntries* forward, TurnEntries* backward) {
    if (forward != nullptr) add(forward->before);
    const bool head_covers = backward != nullptr && has_head(*backward);
    if (backward != nullptr) {
      add(backward->before);
      start_combine(*backward, 0);
    }
    const auto layer_of = [](TurnEntries* turn, std::size_t i) {
      return turn != nullptr && i < turn->layers.size() ? &turn->layers[i] : nullptr;
    };
    Layer* f_before = nullptr;
    for (std::size_t i = 0; layer_of(forward, i) != nullptr || layer_of(backward, i) != nullptr;
         ++i) {
      Layer* f = layer_of(forward, i);
      Layer* b = layer_of(backward, i);
      const auto next_backward = [&] {
        if (b != nullptr) start_combine(*backward, i + 1);
      };
      switch (beside_) {
        case DispatchBeside::Experts:
          beside_experts(f, b, next_backward);
          break;
        case DispatchBeside::Attention:
          // Cover of the first combine, while no earlier layer exists.
          if (i == 0 && !head_covers) add(f, Place::Before);
          beside_attention(f_before, f, b, next_backward);
          break;
      }
      f_before = f;
    }
    add(f_before, Place::After);
    if (forward != nullptr) add(forward->after);
    if (backward != nullptr) add(backward->after);
  }

  void add(NamedEntries& entries) {
    for (NamedEntry& entry : entries) all_.push_back(std::move(entry));
    entries.clear();
  }

  NamedEntries take() { return std::move(all_); }

 private:
  void add(Layer* layer, Place place) {
    if (layer != nullptr) add(layer->places[static_cast<std::size_t>(place)]);
  }

  // True if the first combine travels beside a head's weight gradient.
  bool has_head(const TurnEntries& backward) const {
    return first_combine_ == FirstCombine::BesideHead &&
           std::ranges::any_of(backward.before, [](const NamedEntry& entry) {
             return entry.node.direction == Direction::W;
           });
  }

  // Between two backward layers: starts the next layer's combine, or the send to the previous
  // stage.
  void start_combine(TurnEntries& backward, std::size_t layer) {
    if (layer < backward.layers.size()) {
      add(&backward.layers[layer], Place::After);
      add(&backward.layers[layer], Place::Combine);
    } else if (layer > 0) {
      add(backward.after);
    }
  }

  template <typename Next>
  void beside_experts(Layer* f, Layer* b, const Next& next_backward) {
    add(f, Place::Before);
    add(b, Place::Between);
    add(f, Place::Dispatch);
    add(b, Place::Dispatch);
    if (release_ == AttentionRelease::Early) add(b, Place::Before);
    add(f, Place::Between);
    add(f, Place::Combine);
    add(b, Place::Before);
    next_backward();
    add(f, Place::After);
  }

  // A forward layer's combine travels beside the experts of the next pair, and its merge follows
  // them.
  template <typename Next>
  void beside_attention(Layer* f_before, Layer* f, Layer* b, const Next& next_backward) {
    add(b, Place::Between);
    add(b, Place::Dispatch);
    add(f_before, Place::After);
    add(f, Place::Before);
    add(b, Place::Before);
    add(f, Place::Dispatch);
    next_backward();
    add(f, Place::Between);
    add(f, Place::Combine);
  }

  const DispatchBeside beside_;
  const AttentionRelease release_;
  const FirstCombine first_combine_;
  NamedEntries all_;
};

// Entries outside any turn end the step.
std::map<Turn, TurnEntries> cut(NamedEntries entries,
                                const Anatomy& anatomy,
                                const TurnOf& turn_of,
                                NamedEntries& step_end) {
  std::map<Turn, TurnEntries> turns;
  for (NamedEntry& entry : entries) {
    if (entry.node.direction == Direction::None) {
      step_end.push_back(std::move(entry));
      continue;
    }
    CHECK(step_end.empty(), "{} after the end of the step", print(entry.node));
    const int chunk = chunk_of(anatomy, entry.node).index;
    turns[turn_of(entry.node, chunk)].add(std::move(entry));
  }
  return turns;
}

}  // namespace

DispatchBeside dispatch_beside(const config::ModelConfig& model) {
  double attention = 0, experts = 0;
  for (const auto& [layer, count] : derive::layer_kinds(model, 0, model.num_layers)) {
    if (!model.is_moe_layer(layer)) continue;
    const derive::LayerFlops forward = derive::layer_forward_flops(model, layer);
    attention += base::number(count) * (forward.attention + forward.shared_experts);
    experts += base::number(count) * forward.feed_forward;
  }
  return 3 * experts / 2 < attention ? DispatchBeside::Attention : DispatchBeside::Experts;
}

Graph interleave_turns(const Graph& graph,
                       const Anatomy& anatomy,
                       const PipelineShape& shape,
                       DispatchBeside beside,
                       AttentionRelease release,
                       FirstCombine first_combine) {
  NamedEntries step_end;
  std::map<Turn, TurnEntries> turns =
      cut(named_entries(graph), anatomy, TurnOf(training_turns(shape), anatomy), step_end);
  Weaver weaver(beside, release, first_combine);
  for (const std::vector<Turn>& round : training_rounds(shape)) {
    TurnEntries* first = &turns[round.front()];
    if (round.size() == 2) {
      weaver.weave(first, &turns[round.back()]);
    } else if (round.front().direction == Direction::F) {
      weaver.weave(first, nullptr);
    } else {
      weaver.weave(nullptr, first);
    }
  }
  weaver.add(step_end);
  return write(weaver.take(), anatomy, shape.micro_batches);
}

}  // namespace weft::schedule
