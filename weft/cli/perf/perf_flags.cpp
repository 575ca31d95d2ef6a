#include "weft/cli/perf/perf_flags.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/words/harness/harness_flags.h"

namespace weft::cli {
namespace {

using base::text;
using words::Does;
using words::HarnessFlag;

std::string names_of(const HarnessFlag& flag) {
  return flag.brief.empty() ? text("--{}", flag.name) : text("-{}, --{}", flag.brief, flag.name);
}

std::string does_text(const HarnessFlag& flag) {
  switch (flag.does.kind) {
    case Does::Kind::SetsKey:
      return text("sets {}", flag.does.text);
    case Does::Kind::Acts:
      return "sets several keys (docs/commandline.md)";
    case Does::Kind::Selects:
      return "chooses recipe, window or comparison";
    case Does::Kind::Nothing:
      return text("no effect: {}", flag.does.text);
  }
  return "";
}

constexpr const char* kMeasuring[] = {"--dryrun",
                                      "--max_steps",
                                      "--eval_time_start_step",
                                      "--eval_time_end_step",
                                      "--skip_first_percent_time",
                                      "--golden_values_path",
                                      "--timing_threshold",
                                      "--memory_threshold",
                                      "--log_dir",
                                      "--save_config_filepath"};

}  // namespace

std::string flags_text() {
  std::size_t width = 0;
  for (const HarnessFlag& flag : words::harness_flags()) {
    width = std::max(width, names_of(flag).size());
  }
  std::string all;
  for (const HarnessFlag& flag : words::harness_flags()) {
    all += text("{:<{}}  {} [{}]; {}\n",
                names_of(flag),
                width,
                flag.meaning,
                words::takes_text(flag),
                does_text(flag));
  }
  return all;
}

base::Json flags_json() {
  base::Json flags = base::Json::array();
  for (const HarnessFlag& flag : words::harness_flags()) {
    flags.push_back({{"name", text("--{}", flag.name)},
                     {"brief", nullptr},
                     {"takes", words::takes_text(flag)},
                     {"means", std::string(flag.meaning)},
                     {"does", does_text(flag)}});
    if (!flag.brief.empty()) flags.back()["brief"] = text("-{}", flag.brief);
  }
  return {{"flags", std::move(flags)}};
}

std::string measuring_flags_text() {
  std::string all;
  for (const char* dashed : kMeasuring) {
    const HarnessFlag* flag = words::find_harness_flag(dashed);
    CHECK(flag != nullptr, "the harness has no {}", dashed);
    all += text("  {:<32}{}{}\n",
                names_of(*flag),
                flag->meaning,
                flag->initial.empty() || flag->takes == words::Takes::Nothing
                    ? ""
                    : text(" ({})", flag->initial));
  }
  return all;
}

}  // namespace weft::cli
