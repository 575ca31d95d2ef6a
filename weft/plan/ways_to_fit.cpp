#include "weft/plan/ways_to_fit.h"

#include "weft/base/text.h"
#include "weft/config/codec.h"
#include "weft/derive/derived.h"

namespace weft::plan {
namespace {

using base::text;

constexpr std::int64_t kMostTimes = 64;

bool is_smaller(const PricedLayout& a, const std::optional<PricedLayout>& b) {
  return !b || a.price.memory.total() < b->price.memory.total();
}

std::optional<FitWay> with_gpus(const PlanAsk& ask, std::int64_t times) {
  PlanAsk more = ask;
  const std::int64_t world = derive::layout_of(ask.start).world * times;
  if (world > grid::kMaxWorld) return std::nullopt;
  more.start.runtime.world_size = world;
  std::string change = text("{} GPUs", world);
  std::optional<PricedLayout> smallest = smallest_layout(LayoutSpace(more));
  if (!smallest || !smallest->price.memory.fits()) {
    more.start.train.global_batch_size *= times;
    change += text(" and a batch of {}", more.start.train.global_batch_size);
    smallest = smallest_layout(LayoutSpace(more));
  }
  if (!smallest || !smallest->price.memory.fits()) return std::nullopt;
  return FitWay{.change = std::move(change), .layout = *smallest};
}

}  // namespace

std::optional<PricedLayout> smallest_layout(const LayoutSpace& space) {
  std::optional<PricedLayout> smallest;
  for (const LayoutChoice& shape : space.shapes().all) {
    PricedLayout layout{.choice = space.most_frugal(shape), .price = {}};
    layout.price.memory = price_memory(space.writer().config_of(layout.choice),
                                       space.hardware(),
                                       space.routing(),
                                       space.book());
    if (is_smaller(layout, smallest)) smallest = std::move(layout);
  }
  return smallest;
}

std::vector<FitWay> ways_to_fit(const PlanAsk& ask, const std::vector<Hardware>& others) {
  std::vector<FitWay> ways;
  for (std::int64_t times = 2; times <= kMostTimes; times *= 2) {
    if (std::optional<FitWay> way = with_gpus(ask, times)) {
      ways.push_back(std::move(*way));
      break;
    }
  }
  for (const Hardware& other : others) {
    if (other.name == ask.hardware.name) continue;
    PlanAsk there = ask;
    there.hardware = other;
    there.start.hardware.gpu = config::WordCodec<config::Gpu>::parse(other.name);
    const std::optional<PricedLayout> smallest = smallest_layout(LayoutSpace(there));
    if (!smallest || !smallest->price.memory.fits()) continue;
    ways.push_back(
        {.change = text("{} instead of {}", other.name, ask.hardware.name), .layout = *smallest});
  }
  return ways;
}

}  // namespace weft::plan
