#include "weft/rules/validate.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/rules/judge.h"

namespace weft::rules {

using namespace config;
namespace {

void refuse(const Verdict& verdict) {
  std::vector<std::string> complaints;
  for (const Finding& error : verdict.errors) complaints.push_back(to_text(error));
  for (const Missing& part : verdict.missing) {
    complaints.push_back(base::text("{}: {}", part.message, part.fix));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

Verdict judge_rules(const Config& config) {
  Judge judge(config);
  for (const Rule& rule : rules()) {
    if (rule.judge != nullptr) judge.apply(rule);
  }
  return {.config = judge.config(),
          .errors = judge.take_errors(),
          .warnings = judge.take_warnings(),
          .automatic = judge.take_automatic(),
          .missing = {},
          .judged = {}};
}

Verdict judge_whole(const Config& config) {
  Verdict verdict = judge_rules(config);
  if (verdict.legal()) {
    verdict.missing = missing_parts(verdict.config);
    // Limits of CPU ranks in this process.
    const bool on_cpu = verdict.config.runtime.device == config::DeviceKind::Cpu;
    if (on_cpu && !derive::is_on_gpu(verdict.config)) {
      for (Missing& limit : process_limits(verdict.config)) {
        verdict.missing.push_back(std::move(limit));
      }
    }
  }
  return verdict;
}

// W112: a run that decides itself turns the overlap off if the overlap could not run.
template <typename JudgeOne>
Verdict judge_choice(const Config& config, const JudgeOne& judge_one) {
  Verdict verdict = judge_one(config);
  if (!config.comm_overlap.overlap_moe_expert_parallel_comm.automatic || verdict.runs()) {
    return verdict;
  }
  const std::string why =
      verdict.legal() ? verdict.missing.front().message : config::to_text(verdict.errors.front());
  Config without = config;
  without.comm_overlap.overlap_moe_expert_parallel_comm = false;
  without.comm_overlap.delay_wgrad_compute = false;
  verdict = judge_one(without);
  verdict.automatic.push_back({.id = "W112",
                               .key = "comm_overlap.overlap_moe_expert_parallel_comm",
                               .from = "auto",
                               .to = false,
                               .message = "it could not run (" + why + ")",
                               .fix = ""});
  return verdict;
}

}  // namespace

Verdict judge(const Config& config) {
  Verdict verdict = judge_choice(config, judge_whole);
  if (verdict.runs()) verdict.judged = JudgedConfig(verdict.config);
  return verdict;
}

Verdict validate(const Config& config) {
  Verdict verdict = judge(config);
  refuse(verdict);
  return verdict;
}

Verdict validate_schedule(const Config& config) {
  Verdict verdict = judge_choice(config, judge_rules);
  if (verdict.legal()) verdict.missing = schedule_limits(verdict.config);
  refuse(verdict);
  verdict.missing = missing_parts(verdict.config);
  return verdict;
}

}  // namespace weft::rules
