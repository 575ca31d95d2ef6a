// What `weft check` found, as people and programs read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/check_schedule.h"
#include "weft/config/advice/advice.h"
#include "weft/config/derived_run.h"
#include "weft/config/overlap_modes.h"
#include "weft/config/validate.h"

namespace weft::cli {

// Whether the words and files could be read at all; where not, there is nothing else to judge.
enum class Readable { Yes, No };
enum class ScheduleWish { None, Verify };

struct CheckReport {
  std::string recipe;  // empty: the defaults
  Readable readable = Readable::Yes;
  config::Verdict verdict;
  // Where the run is legal:
  std::vector<config::Note> advice;
  std::vector<config::OverlapMode> modes;
  std::optional<config::DerivedRun> derived;
  std::optional<ScheduleCheck> schedule;
  ScheduleWish wish = ScheduleWish::None;
};

base::Json to_json(const CheckReport& report);
std::string to_text(const CheckReport& report);

}  // namespace weft::cli
