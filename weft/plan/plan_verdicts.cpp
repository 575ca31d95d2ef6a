// What the best layout and those beside it say of overlap, delayed weight gradients and full
// recomputation.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/plan/sensitivity.h"

namespace weft::plan {
namespace {

using base::text;

constexpr double kPlanGb = 1e9;

// A layout beside the best: legal, and in memory.
std::optional<PricedLayout> priced_beside(const LayoutSpace& space, const LayoutChoice& choice) {
  const std::vector<StepOrder> orders = space.orders_of(choice);
  if (std::ranges::find(orders, choice.order) == orders.end()) return std::nullopt;
  if (!space.goes_with(choice.order, choice.recompute)) return std::nullopt;
  if (!refusal_of(space, choice).empty()) return std::nullopt;
  PricedLayout layout{.choice = choice,
                      .price = price_run(space.writer().config_of(choice), space.hardware())};
  if (!layout.price.memory.fits()) return std::nullopt;
  return layout;
}

// The same layout in an order, with the least recomputation that fits.
std::optional<PricedLayout> in_order(const LayoutSpace& space,
                                     LayoutChoice choice,
                                     StepOrder order) {
  choice.order = order;
  for (choice.recompute = 0; choice.recompute < space.writer().ladder().size();
       ++choice.recompute) {
    if (auto layout = priced_beside(space, choice)) return layout;
  }
  return std::nullopt;
}

double gain_of(const PricedLayout& with, const PricedLayout& without) {
  return 1 - with.price.step_ms / without.price.step_ms;
}

std::string memory_change(const PricedLayout& with, const PricedLayout& without) {
  const double more = with.price.memory.total() - without.price.memory.total();
  return text("{:.1f} GB {}", std::abs(more) / kPlanGb, more >= 0 ? "more" : "less");
}

std::string elsewhere(const std::optional<PricedLayout>& best_with,
                      const std::optional<PricedLayout>& best_without,
                      const LayoutSpace& space) {
  if (!best_with || !best_without) return "";
  const auto shape = [&](const PricedLayout& layout) {
    return to_text(layout.choice, space.writer().ladder());
  };
  return text(" In any layout: {:.4g} ms with it ({}), {:.4g} ms without ({}).",
              best_with->price.step_ms,
              shape(*best_with),
              best_without->price.step_ms,
              shape(*best_without));
}

const std::optional<PricedLayout>& faster(const std::optional<PricedLayout>& a,
                                          const std::optional<PricedLayout>& b) {
  if (!a || !b) return a ? a : b;
  return b->price.step_ms < a->price.step_ms ? b : a;
}

std::optional<PlanVerdict> overlap_verdict(const LayoutSpace& space,
                                           const SearchResult& search,
                                           const LayoutChoice& best) {
  const auto plain = in_order(space, best, StepOrder::Plain);
  const auto merged = in_order(space, best, StepOrder::Merged);
  const auto delayed = in_order(space, best, StepOrder::MergedDelayed);
  const std::optional<PricedLayout> with = faster(merged, delayed);
  if (!plain || !with) return std::nullopt;
  const double gain = gain_of(*with, *plain);
  std::string because = text(
      "{:.4g} ms with it, {:.4g} ms without; exposed expert-parallel communication {:.4g} ms "
      "against {:.4g} ms, launches that the GPU waits for {:.4g} ms against {:.4g} ms, "
      "memory {}.",
      with->price.step_ms,
      plain->price.step_ms,
      with->price.exposed.ep,
      plain->price.exposed.ep,
      with->price.exposed.host,
      plain->price.exposed.host,
      memory_change(*with, *plain));
  const std::optional<PricedLayout> anywhere =
      faster(search.best_of_order[1], search.best_of_order[2]);
  because += elsewhere(anywhere, search.best_of_order[0], space);
  return PlanVerdict{.question = "Does expert-parallel overlap pay here?",
                     .pays = gain > 0,
                     .gain = gain,
                     .because = std::move(because)};
}

std::optional<PlanVerdict> delayed_verdict(const LayoutSpace& space, const LayoutChoice& best) {
  const auto merged = in_order(space, best, StepOrder::Merged);
  const auto delayed = in_order(space, best, StepOrder::MergedDelayed);
  if (!merged || !delayed) return std::nullopt;
  const double gain = gain_of(*delayed, *merged);
  return PlanVerdict{
      .question = "Do delayed weight gradients pay on top of it?",
      .pays = gain > 0,
      .gain = gain,
      .because = text("{:.4g} ms with them, {:.4g} ms without; exposed expert-parallel "
                      "communication {:.4g} ms against {:.4g} ms, launches {:.4g} ms against "
                      "{:.4g} ms.",
                      delayed->price.step_ms,
                      merged->price.step_ms,
                      delayed->price.exposed.ep,
                      merged->price.exposed.ep,
                      delayed->price.exposed.host,
                      merged->price.exposed.host)};
}

std::optional<PlanVerdict> full_verdict(const LayoutSpace& space, const SearchResult& search) {
  const PricedLayout& best = search.ranked.front();
  const std::vector<RecomputeRung>& ladder = space.writer().ladder();
  if (!ladder.back().is_full || ladder.back().is_given || !search.best_full) return std::nullopt;
  LayoutChoice choice = best.choice;
  choice.recompute = ladder.size() - 1;
  if (!space.goes_with(choice.order, choice.recompute)) choice.order = StepOrder::Plain;
  const double gain = gain_of(*search.best_full, best);
  std::string because = text("The fastest layout with it takes {:.4g} ms ({}), the best {:.4g} ms.",
                             search.best_full->price.step_ms,
                             to_text(search.best_full->choice, ladder),
                             best.price.step_ms);
  if (ladder[best.choice.recompute].is_full) {
    because = "The best layout needs it to fit, or for its micro-batch.";
  } else if (const auto same = priced_beside(space, choice)) {
    because += text(" In the best layout itself it makes {:.4g} ms of {:.4g} ms, with {}.",
                    same->price.step_ms,
                    best.price.step_ms,
                    memory_change(*same, best));
  }
  return PlanVerdict{.question = "Does recomputation of whole layers pay?",
                     .pays = gain >= 0,
                     .gain = gain,
                     .because = std::move(because)};
}

}  // namespace

std::vector<PlanVerdict> plan_verdicts(const LayoutSpace& space, const SearchResult& search) {
  std::vector<PlanVerdict> all;
  if (search.ranked.empty()) return all;
  const LayoutChoice& best = search.ranked.front().choice;
  if (auto verdict = overlap_verdict(space, search, best)) all.push_back(std::move(*verdict));
  if (auto verdict = delayed_verdict(space, best)) all.push_back(std::move(*verdict));
  if (auto verdict = full_verdict(space, search)) all.push_back(std::move(*verdict));
  return all;
}

}  // namespace weft::plan
