#include "weft/report/next.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/rules/advice/advice.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::report {
namespace {

using base::text;

constexpr std::size_t kMost = 3;
// Of the step: less is within what two runs differ by.
constexpr double kWorthwhile = 0.01;

bool speaks_of(const rules::Note& note, const Idea& idea) {
  return std::ranges::any_of(idea.words, [&](const std::string& word) {
    return word.starts_with(note.key + "=");
  });
}

// Whether the rules allow the change and this build runs it; what is advised about it is added.
bool is_allowed(const config::Config& run, Idea& idea) {
  try {
    const rules::Verdict verdict = rules::judge(words::with_words(run, idea.words));
    if (!verdict.runs()) return false;
    for (const rules::Note& note : rules::advise(verdict.config)) {
      if (speaks_of(note, idea)) idea.because += text("; note that {} ({})", note.message, note.id);
    }
    return true;
  } catch (const base::ConfigError&) {
    return false;  // a key that the run cannot have
  }
}

std::optional<Suggestion> judged(const NextFacts& facts, Idea idea) {
  const double step_ms = facts.report.step_ms();
  if (idea.at_most_ms < kWorthwhile * step_ms) return std::nullopt;
  if (facts.run != nullptr && !is_allowed(*facts.run, idea)) return std::nullopt;
  Suggestion suggestion{.phase = idea.phase,
                        .change = text("{}", fmt::join(idea.words, " ")),
                        .gain_ms = idea.at_most_ms,
                        .basis = idea.ask == Idea::Ask::Known ? Suggestion::Basis::Simulated
                                                              : Suggestion::Basis::AtMost,
                        .because = std::move(idea.because),
                        .rule = std::move(idea.rule)};
  if (idea.ask == Idea::Ask::Simulator && facts.what_if != nullptr) {
    const std::optional<double> gain = facts.what_if->gain_ms(idea.words);
    if (gain && *gain < kWorthwhile * step_ms) return std::nullopt;
    if (gain) {
      suggestion.gain_ms = std::min(*gain, idea.at_most_ms);
      suggestion.basis = Suggestion::Basis::Simulated;
    }
  }
  return suggestion;
}

}  // namespace

std::vector<Suggestion> next_to_try(const NextFacts& facts) {
  std::vector<Suggestion> all = fit_suggestions(facts);
  for (Suggestion& one : profile_suggestions(facts)) all.push_back(std::move(one));
  for (const auto ideas : {communication_ideas, compute_ideas, pipeline_ideas}) {
    for (Idea& idea : ideas(facts)) {
      if (auto suggestion = judged(facts, std::move(idea))) all.push_back(std::move(*suggestion));
    }
  }
  std::ranges::stable_sort(all, [](const Suggestion& a, const Suggestion& b) {
    if (a.phase != b.phase) return a.phase < b.phase;
    return a.gain_ms.value_or(0) > b.gain_ms.value_or(0);
  });
  if (all.size() > kMost) all.resize(kMost);
  return all;
}

}  // namespace weft::report
