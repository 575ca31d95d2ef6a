#include "weft/cli/perf/perf_plan.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/measure/runs/perf_run.h"
#include "weft/words/resolution.h"

namespace weft::cli {
namespace {

using base::text;

class Complaints {
 public:
  void add(const plan::Variant& variant, const std::string& complaint) {
    const bool varies = !variant.overrides.empty();
    all_.push_back(varies ? text("{}: {}", fmt::join(variant.overrides, " "), complaint)
                          : complaint);
  }
  void raise() {
    if (!all_.empty()) throw base::ConfigError(std::move(all_));
  }

 private:
  std::vector<std::string> all_;
};

std::string why_twin(const config::Config& config, const PlanRequest& request) {
  if (request.twin == TwinUse::Always) return "--twin asks for it";
  if (derive::is_on_gpu(config)) {
    return "the run is for GPUs, and weft perf times ranks on processor cores";
  }
  const std::optional<rules::Missing> limit = machine_limit(config);
  return limit ? limit->message : "";
}

config::Config with_overrides(const PlanRequest& request,
                              const plan::Variant& variant,
                              Complaints& complaints) {
  try {
    return words::with_words(request.config, variant.overrides);
  } catch (const base::ConfigError& wrong) {
    for (const std::string& complaint : wrong.complaints()) complaints.add({}, complaint);
    return request.config;
  }
}

std::vector<plan::Change> harness_changes(const config::Config& from, const config::Config& to) {
  std::vector<plan::Change> changes;
  for (const config::Field& field : config::fields()) {
    const base::Json before = field.get(from), after = field.get(to);
    if (before == after) continue;
    changes.push_back(
        {.key = field.key, .from = before, .to = after, .why = "set by the harness for every run"});
  }
  return changes;
}

// nullopt: the rules refuse it, or this build cannot run it.
std::optional<Candidate> candidate_of(const PlanRequest& request,
                                      const PerfPlan& plan,
                                      const plan::Variant& variant,
                                      const config::Config& config,
                                      Complaints& complaints) {
  plan::Twin twin{.config = config, .changes = {}};
  if (plan.is_twin()) twin = plan::twin_of(config);
  const config::Config run = measure::perf_config(twin.config, request.steps);
  rules::Verdict verdict = rules::judge(run);
  for (const config::Finding& error : verdict.errors) complaints.add(variant, to_text(error));
  for (const rules::Missing& part : verdict.missing) {
    complaints.add(
        variant,
        text("{}: {}, or run a scaled-down twin without it: --twin", part.message, part.fix));
  }
  if (run.runtime.backend != config::CommBackend::Threads) {
    complaints.add(variant,
                   text("runtime.backend = {}: weft perf times ranks that are threads of one "
                        "process: set runtime.backend=threads",
                        config::word(run.runtime.backend)));
  }
  if (!verdict.judged) return std::nullopt;
  std::vector<plan::Change> changes = std::move(twin.changes);
  for (plan::Change& change : harness_changes(twin.config, run)) {
    changes.push_back(std::move(change));
  }
  std::vector<rules::OverlapMode> overlaps = rules::overlap_modes(verdict);
  return Candidate{.value = variant.value,
                   .asked = rules::judge(config).config,
                   .config = std::move(*verdict.judged),
                   .changes = std::move(changes),
                   .warnings = std::move(verdict.warnings),
                   .automatic = std::move(verdict.automatic),
                   .overlaps = std::move(overlaps)};
}

// Rejects values that are equal in different spellings.
void refuse_same_values(const std::vector<plan::Variant>& variants,
                        const std::vector<config::Config>& configs,
                        Complaints& complaints) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!harness_changes(configs[i], configs[j]).empty()) continue;
      complaints.add(variants[i],
                     text("is the same value as {}: leave one out", variants[j].value));
      break;
    }
  }
}

const plan::Change* change_of(const Candidate& candidate, const std::string& key) {
  const auto found = std::ranges::find(candidate.changes, key, &plan::Change::key);
  return found == candidate.changes.end() ? nullptr : &*found;
}

// Reason why two values of the varied keys give the same run.
std::string why_equal(const PerfPlan& plan, const Candidate& one, const Candidate& other) {
  std::vector<std::string> fixed;
  for (const std::string& key : plan.varied) {
    const plan::Change* change = change_of(one, key);
    if (change == nullptr) change = change_of(other, key);
    if (change == nullptr) continue;
    fixed.push_back(text("{} {} = {} ({}), so that --vary cannot show it",
                         plan.is_twin() ? "the twin fixes" : "the harness fixes",
                         key,
                         change->to.dump(),
                         change->why));
  }
  if (fixed.empty()) return text("{} does nothing in this run", fmt::join(plan.varied, ", "));
  return text("{}", fmt::join(fixed, "; "));
}

// Rejects two values that give the same run: they compare nothing.
void refuse_equal(const PerfPlan& plan,
                  const std::vector<plan::Variant>& variants,
                  Complaints& complaints) {
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!harness_changes(plan.candidates[i].config, plan.candidates[j].config).empty()) continue;
      complaints.add(variants[i],
                     text("runs exactly what {} runs{}: {}: vary another key",
                          plan.candidates[j].value,
                          plan.is_twin() ? ", on the twin (" + plan.twin_reason + ")" : "",
                          why_equal(plan, plan.candidates[i], plan.candidates[j])));
      break;
    }
  }
}

std::vector<std::string> following_keys(const PerfPlan& plan) {
  std::vector<std::string> keys;
  for (const config::Field& field : config::fields()) {
    if (std::ranges::find(plan.varied, field.key) != plan.varied.end()) continue;
    const base::Json first = field.get(plan.candidates.front().config);
    const bool differs = std::ranges::any_of(plan.candidates, [&](const Candidate& candidate) {
      return field.get(candidate.config) != first;
    });
    if (differs) keys.push_back(field.key);
  }
  return keys;
}

}  // namespace

PerfPlan plan_perf(const PlanRequest& request) {
  const std::vector<plan::Variant> variants = plan::variants_of(request.knobs, request.sweep);
  PerfPlan plan{.candidates = {}, .varied = {}, .following = {}, .twin_reason = {}};
  plan.steps = request.steps;
  for (const plan::Knob& knob : request.knobs) plan.varied.push_back(knob.key);
  Complaints complaints;
  std::vector<config::Config> configs;
  for (const plan::Variant& variant : variants) {
    configs.push_back(with_overrides(request, variant, complaints));
  }
  complaints.raise();
  refuse_same_values(variants, configs, complaints);
  complaints.raise();
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const rules::Verdict verdict = rules::judge(configs[i]);
    for (const config::Finding& error : verdict.errors) complaints.add(variants[i], to_text(error));
  }
  complaints.raise();
  // One twin makes all runs twins: only like runs compare.
  for (const config::Config& config : configs) {
    if (plan.twin_reason.empty()) {
      plan.twin_reason = why_twin(rules::judge(config).config, request);
    }
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    auto candidate = candidate_of(request, plan, variants[i], configs[i], complaints);
    if (candidate) plan.candidates.push_back(std::move(*candidate));
  }
  complaints.raise();
  refuse_equal(plan, variants, complaints);
  complaints.raise();
  plan.following = following_keys(plan);
  return plan;
}

}  // namespace weft::cli
