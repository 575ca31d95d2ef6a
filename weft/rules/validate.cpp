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

}  // namespace

Verdict judge(const Config& config) {
  Verdict verdict = judge_rules(config);
  if (verdict.legal()) {
    verdict.missing = missing_parts(verdict.config);
    // The limits are those of CPU ranks in this process.
    const bool on_cpu = verdict.config.runtime.device == config::DeviceKind::Cpu;
    if (on_cpu && !derive::is_on_gpu(verdict.config)) {
      for (Missing& limit : process_limits(verdict.config)) {
        verdict.missing.push_back(std::move(limit));
      }
    }
  }
  if (verdict.runs()) verdict.judged = JudgedConfig(verdict.config);
  return verdict;
}

Verdict validate(const Config& config) {
  Verdict verdict = judge(config);
  refuse(verdict);
  return verdict;
}

Verdict validate_schedule(const Config& config) {
  Verdict verdict = judge_rules(config);
  if (verdict.legal()) verdict.missing = schedule_limits(verdict.config);
  refuse(verdict);
  verdict.missing = missing_parts(verdict.config);
  return verdict;
}

}  // namespace weft::rules
