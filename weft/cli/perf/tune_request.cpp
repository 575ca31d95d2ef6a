#include "weft/cli/perf/tune_request.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/derive/derived.h"
#include "weft/plan/tuning/perf_vary.h"
#include "weft/plan/tuning/tuning_contract.h"

namespace weft::cli {

void add_vary(CLI::App& command, std::vector<std::string>& vary) {
  command
      .add_option("--vary",
                  vary,
                  "a key and values to try, a.b=x,y, instead of those that the tuner knows; may "
                  "be given several times")
      ->allow_extra_args(false);
}

std::vector<plan::TuningMove> asked_moves(const std::vector<std::string>& vary) {
  std::vector<plan::TuningMove> moves;
  for (const std::string& word : vary) {
    const plan::Knob knob = plan::parse_knob(word);
    plan::require_tunable_key(knob.key);
    for (const std::string& value : knob.values) {
      moves.push_back({.sets = {{knob.key, value}}, .kind = plan::kind_of_change(knob.key)});
    }
  }
  return moves;
}

void require_own_program(const std::string& word) {
  if (asked_program(word).value_or(plan::Program::Weft) == plan::Program::Weft) return;
  throw base::ConfigError(base::text(
      "--program={}: weft tune measures Weft's own steps: leave it out, or ask weft plan "
      "--program={}, which prices Megatron Bridge",
      word,
      word));
}

void require_tunable(const config::Config& config) {
  if (derive::is_on_gpu(config)) {
    throw base::ConfigError(
        "weft tune measures on the machine at hand, and hardware.* names a GPU that ranks are "
        "planned for: leave hardware.* out (runtime.device=cuda runs on a GPU that is here), or "
        "price the run with weft plan");
  }
  if (const std::optional<rules::Missing> limit = machine_limit(config)) {
    throw base::ConfigError(base::text("{}: {}", limit->message, limit->fix));
  }
  if (config.runtime.backend != config::CommBackend::Threads) {
    throw base::ConfigError(
        base::text("runtime.backend = {}: weft tune times ranks that are threads of one process: "
                   "set runtime.backend=threads",
                   config::word(config.runtime.backend)));
  }
}

}  // namespace weft::cli
