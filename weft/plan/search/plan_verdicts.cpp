#include "weft/plan/search/plan_verdicts.h"

#include <algorithm>
#include <set>

#include "weft/base/text.h"
#include "weft/plan/cost/time_text.h"
#include "weft/plan/memory/memory_text.h"
#include "weft/plan/price/price_memory.h"
#include "weft/plan/price/sensitivity.h"

namespace weft::plan {
namespace {

using base::text;

// Priced neighbour of the best layout; nullopt: illegal or too large.
std::optional<PricedLayout> priced_beside(const LayoutSpace& space, const LayoutChoice& choice) {
  const std::vector<StepOrder> orders = space.orders_of(choice);
  if (std::ranges::find(orders, choice.order) == orders.end()) return std::nullopt;
  if (!space.order_allows(choice.order, choice.recompute)) return std::nullopt;
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

// Layout of the search with its memory by formula, comparable with the neighbours.
PricedLayout by_formula(const LayoutSpace& space, PricedLayout layout) {
  layout.price.memory = price_memory(space.writer().config_of(layout.choice),
                                     space.hardware(),
                                     space.routing(),
                                     space.book());
  return layout;
}

std::optional<PricedLayout> faster(const std::optional<PricedLayout>& a,
                                   const std::optional<PricedLayout>& b) {
  if (!a || !b) return a ? a : b;
  return b->price.step_ms < a->price.step_ms ? b : a;
}

// Representative of a mode: the best layout if it has the mode, even if another layout is faster
// within a tie.
std::optional<PricedLayout> place_one(bool has_it,
                                      const PricedLayout& best,
                                      const std::optional<PricedLayout>& fastest) {
  return has_it ? best : fastest;
}

// Best layout in another order at its fastest: with and without graphs, with the least
// recomputation that fits, and with the best layout's modes.
std::optional<PricedLayout> in_order(const LayoutSpace& space,
                                     const PricedLayout& best,
                                     StepOrder order) {
  if (order == best.choice.order) return by_formula(space, best);
  LayoutChoice choice = best.choice;
  choice.order = order;
  std::optional<PricedLayout> fastest = priced_beside(space, choice);
  std::set<Graphs> priced;
  for (choice.recompute = 0; choice.recompute < space.writer().ladder().size();
       ++choice.recompute) {
    for (const Graphs graphs : space.graphs_of(choice)) {
      if (priced.contains(graphs)) continue;
      choice.graphs = graphs;
      const std::optional<PricedLayout> layout = priced_beside(space, choice);
      if (!layout) continue;
      priced.insert(graphs);
      fastest = faster(fastest, layout);
    }
  }
  return fastest;
}

double gain_of(const PricedLayout& with, const PricedLayout& without) {
  return 1 - with.price.step_ms / without.price.step_ms;
}

std::string memory_change(const PricedLayout& with, const PricedLayout& without) {
  constexpr double kSame = 0.05 * kGib;
  const double more = with.price.memory.total() - without.price.memory.total();
  if (std::abs(more) < kSame) return "as much memory";
  return text("{:.1f} GiB {}", in_gib(std::abs(more)), more >= 0 ? "more" : "less");
}

// Text about layouts, named by their difference from the best.
class VerdictText {
 public:
  VerdictText(const LayoutSpace& space, const LayoutChoice& best) : space_(space), best_(best) {}

  // "3924 ms (place 1)", "4521 ms (ep 8, no graphs)".
  std::string timed(const PricedLayout& layout) const {
    const std::string change = difference_text(layout.choice, best_, space_.writer());
    return text("{} ({})", time_text(layout.price.step_ms), change.empty() ? "place 1" : change);
  }

  std::string elsewhere(const std::optional<PricedLayout>& with,
                        const std::optional<PricedLayout>& without) const {
    if (!with || !without) return "";
    return text(" In any layout: {} with it, {} without.", timed(*with), timed(*without));
  }

  // Further differences besides the mode in question, with the rule that requires them.
  std::string also_differs(const PricedLayout& with, const PricedLayout& without) const {
    LayoutChoice same = with.choice;
    same.order = without.choice.order;
    const std::string change = difference_text(same, without.choice, space_.writer());
    if (change.empty()) return "";
    std::string all = text(" With it also: {}", change);
    LayoutChoice refused = with.choice;
    refused.graphs = without.choice.graphs;
    const bool has_lost = refused.graphs != with.choice.graphs;
    const std::string why = has_lost ? refusal_of(space_, refused) : "";
    return all + (why.empty() ? "." : text(", because of {}.", why));
  }

 private:
  const LayoutSpace& space_;
  const LayoutChoice& best_;
};

// "exposed communication of experts 1085 ms against 6859 ms, ...", without zeros.
std::string exposed_change(const PricedLayout& with, const PricedLayout& without) {
  const ExposedMs &one = with.price.exposed, &other = without.price.exposed;
  std::string all = text("Exposed communication of experts: {} against {}",
                         time_text(one.ep),
                         time_text(other.ep));
  if (one.host + other.host > 1e-3 * without.price.step_ms) {
    all += text("; the GPU waits for launches: {} against {}",
                time_text(one.host),
                time_text(other.host));
  }
  return all + text("; it takes {}.", memory_change(with, without));
}

// Mode in the best layout, if it fits with and without, and in any layout.
struct ModeAsked {
  std::string question;
  std::optional<PricedLayout> with, without;          // in the best layout
  std::optional<PricedLayout> any_with, any_without;  // in any layout
};

std::optional<PlanVerdict> mode_verdict(const ModeAsked& asked, const VerdictText& words) {
  PlanVerdict verdict{.question = asked.question, .pays = false, .gain = 0, .because = ""};
  if (asked.with && asked.without) {
    verdict.gain = gain_of(*asked.with, *asked.without);
    verdict.because = text("{} with it, {} without. {}{}",
                           time_text(asked.with->price.step_ms),
                           time_text(asked.without->price.step_ms),
                           exposed_change(*asked.with, *asked.without),
                           words.also_differs(*asked.with, *asked.without));
  } else if (asked.any_with && asked.any_without) {
    verdict.gain = gain_of(*asked.any_with, *asked.any_without);
    verdict.because = text("The best layout does not fit {} it.", asked.with ? "without" : "with");
  } else {
    return std::nullopt;
  }
  verdict.pays = verdict.gain > kTie;
  verdict.because +=
      words.elsewhere(faster(asked.any_with, asked.with), faster(asked.any_without, asked.without));
  return verdict;
}

std::optional<PlanVerdict> overlap_verdict(const LayoutSpace& space,
                                           const SearchResult& search,
                                           const VerdictText& words) {
  const PricedLayout& best = search.ranked.front();
  const auto& anywhere = search.best_of_order;
  const bool has_it = best.choice.order != StepOrder::Plain;
  const auto merged = [&] {
    return faster(in_order(space, best, StepOrder::Merged),
                  in_order(space, best, StepOrder::MergedDelayed));
  };
  return mode_verdict({.question = "Does expert-parallel overlap pay here?",
                       .with = has_it ? by_formula(space, best) : merged(),
                       .without = in_order(space, best, StepOrder::Plain),
                       .any_with = place_one(has_it, best, faster(anywhere[1], anywhere[2])),
                       .any_without = place_one(!has_it, best, anywhere[0])},
                      words);
}

std::optional<PlanVerdict> delayed_verdict(const LayoutSpace& space,
                                           const SearchResult& search,
                                           const VerdictText& words) {
  const PricedLayout& best = search.ranked.front();
  const StepOrder order = best.choice.order;
  return mode_verdict(
      {.question = "Do delayed weight gradients pay on top of it?",
       .with = in_order(space, best, StepOrder::MergedDelayed),
       .without = in_order(space, best, StepOrder::Merged),
       .any_with = place_one(order == StepOrder::MergedDelayed, best, search.best_of_order[2]),
       .any_without = place_one(order == StepOrder::Merged, best, search.best_of_order[1])},
      words);
}

std::optional<PlanVerdict> full_verdict(const LayoutSpace& space,
                                        const SearchResult& search,
                                        const VerdictText& words) {
  const PricedLayout& best = search.ranked.front();
  const std::vector<RecomputeRung>& ladder = space.writer().ladder();
  if (!ladder.back().is_full || ladder.back().is_given || !search.best_full) return std::nullopt;
  LayoutChoice choice = best.choice;
  choice.recompute = ladder.size() - 1;
  choice.graphs = space.graphs_of(choice).front();
  if (!space.order_allows(choice.order, choice.recompute)) choice.order = StepOrder::Plain;
  const bool is_full = ladder[best.choice.recompute].is_full;
  const PricedLayout fastest = *place_one(is_full, best, search.best_full);
  const double gain = gain_of(fastest, best);
  std::string because = text("The fastest layout with it takes {}, the one on place 1 {}.",
                             words.timed(fastest),
                             time_text(best.price.step_ms));
  if (is_full) {
    because = "The best layout needs it to fit, or for its micro-batch.";
  } else if (const auto same = priced_beside(space, choice)) {
    because += text(" In the best layout itself: {}, with {}.",
                    time_text(same->price.step_ms),
                    memory_change(*same, by_formula(space, best)));
  }
  return PlanVerdict{.question = "Does recomputation of whole layers pay?",
                     .pays = gain > kTie || gain == 0,
                     .gain = gain,
                     .because = std::move(because)};
}

// Verdict from the fastest layouts with and without offloading.
std::optional<PlanVerdict> host_verdict(const SearchResult& search, const VerdictText& words) {
  if (!search.best_offloading) return std::nullopt;
  const PricedLayout& best = search.ranked.front();
  const bool has_it = is_offloading(best.choice);
  const PricedLayout with = *place_one(has_it, best, search.best_offloading);
  PlanVerdict verdict{
      .question = "Does offloading to the host pay here?",
      .pays = true,
      .gain = 0,
      .because = text("Nothing fits without it. The fastest with it takes {}.", words.timed(with))};
  if (!search.best_resident) return verdict;
  const PricedLayout without = *place_one(!has_it, best, search.best_resident);
  verdict.gain = gain_of(with, without);
  verdict.pays = verdict.gain > kTie;
  verdict.because = text(
      "In any layout: {} with it, {} without. With it, copies cost {} that nothing hides, and the "
      "GPU waits for optimizer state {}.",
      words.timed(with),
      words.timed(without),
      time_text(with.price.exposed.copy),
      time_text(with.price.exposed.update));
  return verdict;
}

}  // namespace

std::vector<PlanVerdict> plan_verdicts(const LayoutSpace& space, const SearchResult& search) {
  std::vector<PlanVerdict> all;
  if (search.ranked.empty()) return all;
  const VerdictText words(space, search.ranked.front().choice);
  if (auto verdict = overlap_verdict(space, search, words)) all.push_back(std::move(*verdict));
  if (auto verdict = delayed_verdict(space, search, words)) all.push_back(std::move(*verdict));
  if (auto verdict = full_verdict(space, search, words)) all.push_back(std::move(*verdict));
  if (auto verdict = host_verdict(search, words)) all.push_back(std::move(*verdict));
  return all;
}

}  // namespace weft::plan
