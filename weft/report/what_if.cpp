#include "weft/report/what_if.h"

#include "weft/base/error.h"
#include "weft/rules/validate.h"
#include "weft/words/resolution.h"

namespace weft::report {

WhatIf::WhatIf(const config::Config& run,
               const std::vector<trace::Timeline>& traced,
               double step_ms)
    : run_(run), prediction_(run, std::nullopt, traced, step_ms / 1e3) {}

double WhatIf::replayed_ms() const { return prediction_.ideal_seconds(run_) * 1e3; }

std::optional<double> WhatIf::gain_ms(std::span<const std::string> words) const {
  try {
    const rules::Verdict verdict = rules::judge(words::with_words(run_, words));
    if (!verdict.runs()) return std::nullopt;
    return (prediction_.step_seconds(run_) - prediction_.step_seconds(verdict.config)) * 1e3;
  } catch (const base::ConfigError&) {
    return std::nullopt;
  }
}

}  // namespace weft::report
