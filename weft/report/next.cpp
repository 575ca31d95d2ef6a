#include "weft/report/next.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/plan/tuning/tuning_grid.h"
#include "weft/rules/advice/advice.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::report {
namespace {

using base::text;

constexpr std::size_t kMost = 3;
// Smallest gain as a share of the step: less is within the noise of two runs.
constexpr double kWorthwhile = 0.01;

bool speaks_of(const rules::Note& note, const Idea& idea) {
  return std::ranges::any_of(idea.words, [&](const std::string& word) {
    return word.starts_with(note.key + "=");
  });
}

// Changed run, settled by the rules. nullopt: refused, already in effect, or not runnable by this
// build although the original is.
std::optional<config::Config> allowed(const config::Config& run, const Idea& idea) {
  try {
    const rules::Verdict verdict = rules::judge(words::with_words(run, idea.words));
    const rules::Verdict now = rules::judge(run);
    const bool is_elsewhere = verdict.legal() && !now.runs();
    if (!verdict.runs() && !is_elsewhere) return std::nullopt;
    if (!plan::is_same_run(verdict.config, now.config)) return verdict.config;
  } catch (const base::ConfigError&) {
    // key that the run cannot have
  }
  return std::nullopt;
}

// Advice of rules of thumb on the change, for gains without a simulation.
std::string advice_about(const config::Config& changed, const Idea& idea) {
  std::string all;
  for (const rules::Note& note : rules::advise(changed)) {
    if (speaks_of(note, idea)) all += text("; note that {} ({})", note.message, note.id);
  }
  return all;
}

std::optional<Suggestion> judged(const NextFacts& facts, const Idea& idea) {
  const double step_ms = facts.report.step_ms();
  if (idea.at_most_ms < kWorthwhile * step_ms) return std::nullopt;
  std::optional<config::Config> changed;
  if (facts.run != nullptr) {
    changed = allowed(*facts.run, idea);
    if (!changed) return std::nullopt;
  }
  Suggestion suggestion{.phase = idea.phase,
                        .change = text("{}", fmt::join(idea.words, " ")),
                        .gain_ms = idea.at_most_ms,
                        .basis = idea.ask == Idea::Ask::Known ? Suggestion::Basis::Simulated
                                                              : Suggestion::Basis::AtMost,
                        .because = idea.because,
                        .rule = idea.rule};
  if (idea.ask == Idea::Ask::Simulator && facts.what_if != nullptr) {
    const std::optional<double> gain = facts.what_if->gain_ms(idea.words);
    if (gain && *gain < kWorthwhile * step_ms) return std::nullopt;
    if (gain) {
      suggestion.gain_ms = std::min(*gain, idea.at_most_ms);
      suggestion.basis = Suggestion::Basis::Simulated;
    }
  }
  if (changed && suggestion.basis == Suggestion::Basis::AtMost) {
    suggestion.because += advice_about(*changed, idea);
  }
  return suggestion;
}

}  // namespace

std::vector<Suggestion> next_to_try(const NextFacts& facts) {
  std::vector<Suggestion> all = fit_suggestions(facts);
  for (Suggestion& one : profile_suggestions(facts)) all.push_back(std::move(one));
  for (const auto ideas : {communication_ideas, operation_ideas, compute_ideas, pipeline_ideas}) {
    for (const Idea& idea : ideas(facts)) {
      if (auto suggestion = judged(facts, idea)) all.push_back(std::move(*suggestion));
    }
  }
  std::ranges::stable_sort(all, [](const Suggestion& a, const Suggestion& b) {
    if (a.phase != b.phase) return a.phase < b.phase;
    return a.gain_ms.value_or(0) > b.gain_ms.value_or(0);
  });
  // Two kinds of communication may suggest the same change: the larger gain wins.
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto later = all.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    all.erase(std::remove_if(later,
                             all.end(),
                             [&](const Suggestion& one) { return one.change == all[i].change; }),
              all.end());
  }
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

}  // namespace weft::report
