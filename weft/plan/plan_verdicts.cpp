// What the best layout and those beside it say of overlap, delayed weight gradients, full
// recomputation and offloading.
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
  const config::Config config = space.writer().config_of(choice);
  const MemoryPrice memory = price_memory(config, space.hardware(), space.routing(), space.book());
  if (!memory.fits()) return std::nullopt;
  PricedLayout layout{
      .choice = choice,
      .price = price_step(config, space.hardware(), space.routing(), space.simulated(choice))};
  layout.price.memory = memory;
  return layout;
}

// The same layout in an order, with the least recomputation that fits, and with graphs as it has
// them where the order allows that.
std::optional<PricedLayout> in_order(const LayoutSpace& space,
                                     LayoutChoice choice,
                                     StepOrder order) {
  choice.order = order;
  for (choice.recompute = 0; choice.recompute < space.writer().ladder().size();
       ++choice.recompute) {
    const std::vector<Graphs> graphs = space.graphs_of(choice.recompute);
    const bool has = std::ranges::find(graphs, choice.graphs) != graphs.end();
    for (const Graphs each : has ? std::vector{choice.graphs, graphs.back()} : graphs) {
      LayoutChoice other = choice;
      other.graphs = each;
      if (auto layout = priced_beside(space, other)) return layout;
    }
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
    return to_text(layout.choice, space.writer());
  };
  return text(" In any layout: {} ms with it ({}), {} ms without ({}).",
              ms_text(best_with->price.step_ms),
              shape(*best_with),
              ms_text(best_without->price.step_ms),
              shape(*best_without));
}

std::optional<PricedLayout> faster(const std::optional<PricedLayout>& a,
                                   const std::optional<PricedLayout>& b) {
  if (!a || !b) return a ? a : b;
  return b->price.step_ms < a->price.step_ms ? b : a;
}

// "1085 ms against 6859 ms": of expert-parallel communication, and of launches.
std::string exposed_change(const PricedLayout& with, const PricedLayout& without) {
  const ExposedMs &one = with.price.exposed, &other = without.price.exposed;
  return text(
      "exposed expert-parallel communication {} ms against {} ms, launches that the GPU "
      "waits for {} ms against {} ms, memory {}",
      ms_text(one.ep),
      ms_text(other.ep),
      ms_text(one.host),
      ms_text(other.host),
      memory_change(with, without));
}

// A mode in the best layout where both ways fit there, and in any layout.
std::optional<PlanVerdict> mode_verdict(const LayoutSpace& space,
                                        const std::string& question,
                                        const std::optional<PricedLayout>& with,
                                        const std::optional<PricedLayout>& without,
                                        const std::optional<PricedLayout>& any_with,
                                        const std::optional<PricedLayout>& any_without) {
  PlanVerdict verdict{.question = question, .pays = false, .gain = 0, .because = ""};
  if (with && without) {
    verdict.gain = gain_of(*with, *without);
    verdict.because = text("{} ms with it, {} ms without; {}.",
                           ms_text(with->price.step_ms),
                           ms_text(without->price.step_ms),
                           exposed_change(*with, *without));
  } else if (any_with && any_without) {
    verdict.gain = gain_of(*any_with, *any_without);
    verdict.because = text("The best layout does not fit {} it.", with ? "without" : "with");
  } else {
    return std::nullopt;
  }
  verdict.pays = verdict.gain > 0;
  verdict.because += elsewhere(any_with, any_without, space);
  return verdict;
}

std::optional<PlanVerdict> overlap_verdict(const LayoutSpace& space,
                                           const SearchResult& search,
                                           const LayoutChoice& best) {
  const auto& anywhere = search.best_of_order;
  return mode_verdict(space,
                      "Does expert-parallel overlap pay here?",
                      faster(in_order(space, best, StepOrder::Merged),
                             in_order(space, best, StepOrder::MergedDelayed)),
                      in_order(space, best, StepOrder::Plain),
                      faster(anywhere[1], anywhere[2]),
                      anywhere[0]);
}

std::optional<PlanVerdict> delayed_verdict(const LayoutSpace& space,
                                           const SearchResult& search,
                                           const LayoutChoice& best) {
  return mode_verdict(space,
                      "Do delayed weight gradients pay on top of it?",
                      in_order(space, best, StepOrder::MergedDelayed),
                      in_order(space, best, StepOrder::Merged),
                      search.best_of_order[2],
                      search.best_of_order[1]);
}

std::optional<PlanVerdict> full_verdict(const LayoutSpace& space, const SearchResult& search) {
  const PricedLayout& best = search.ranked.front();
  const std::vector<RecomputeRung>& ladder = space.writer().ladder();
  if (!ladder.back().is_full || ladder.back().is_given || !search.best_full) return std::nullopt;
  LayoutChoice choice = best.choice;
  choice.recompute = ladder.size() - 1;
  choice.graphs = space.graphs_of(choice.recompute).front();
  if (!space.goes_with(choice.order, choice.recompute)) choice.order = StepOrder::Plain;
  const double gain = gain_of(*search.best_full, best);
  std::string because = text("The fastest layout with it takes {} ms ({}), the best {} ms.",
                             ms_text(search.best_full->price.step_ms),
                             to_text(search.best_full->choice, space.writer()),
                             ms_text(best.price.step_ms));
  if (ladder[best.choice.recompute].is_full) {
    because = "The best layout needs it to fit, or for its micro-batch.";
  } else if (const auto same = priced_beside(space, choice)) {
    PricedLayout formula = best;
    formula.price.memory = price_memory(space.writer().config_of(best.choice),
                                        space.hardware(),
                                        space.routing(),
                                        space.book());
    because += text(" In the best layout itself it makes {} ms of {} ms, with {}.",
                    ms_text(same->price.step_ms),
                    ms_text(best.price.step_ms),
                    memory_change(*same, formula));
  }
  return PlanVerdict{.question = "Does recomputation of whole layers pay?",
                     .pays = gain >= 0,
                     .gain = gain,
                     .because = std::move(because)};
}

// What the fastest layouts with and without something on the host say.
std::optional<PlanVerdict> host_verdict(const LayoutSpace& space, const SearchResult& search) {
  if (!search.best_offloading) return std::nullopt;
  const PricedLayout& with = *search.best_offloading;
  const auto said = [&](const PricedLayout& layout) {
    return text("{} ms ({})",
                ms_text(layout.price.step_ms),
                to_text(layout.choice, space.writer()));
  };
  PlanVerdict verdict{
      .question = "Does offloading to the host pay here?",
      .pays = true,
      .gain = 0,
      .because = "Nothing fits without it. The fastest with it takes " + said(with) + "."};
  if (!search.best_resident) return verdict;
  verdict.gain = gain_of(with, *search.best_resident);
  verdict.pays = verdict.gain > 0;
  verdict.because = text(
      "In any layout: {} with it, {} without; copies that nothing hides {} ms, optimizer state "
      "that "
      "the GPU waits for {} ms.",
      said(with),
      said(*search.best_resident),
      ms_text(with.price.exposed.copy),
      ms_text(with.price.exposed.update));
  return verdict;
}

}  // namespace

std::vector<PlanVerdict> plan_verdicts(const LayoutSpace& space, const SearchResult& search) {
  std::vector<PlanVerdict> all;
  if (search.ranked.empty()) return all;
  const LayoutChoice& best = search.ranked.front().choice;
  if (auto verdict = overlap_verdict(space, search, best)) all.push_back(std::move(*verdict));
  if (auto verdict = delayed_verdict(space, search, best)) all.push_back(std::move(*verdict));
  if (auto verdict = full_verdict(space, search)) all.push_back(std::move(*verdict));
  if (auto verdict = host_verdict(space, search)) all.push_back(std::move(*verdict));
  return all;
}

}  // namespace weft::plan
