// What `weft check` found, as people and programs read it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/memory/memory_limit.h"
#include "weft/derive/derived_run.h"
#include "weft/plan/order/check_schedule.h"
#include "weft/rules/advice/advice.h"
#include "weft/rules/parallel/overlap_modes.h"
#include "weft/rules/validate.h"

namespace weft::cli {

// Whether the words and files could be read at all; where not, there is nothing else to judge.
enum class Readable { Yes, No };
enum class ScheduleWish { None, Verify };
enum class MemoryWish { None, Predict };
// Plain: without what was set automatically and the modes of overlap.
enum class Detail { Plain, Verbose };

struct CheckReport {
  std::string recipe;  // empty: the defaults
  Readable readable = Readable::Yes;
  rules::Verdict verdict;
  // Where the run is legal:
  std::vector<rules::Note> advice;
  std::vector<rules::OverlapMode> modes;
  std::optional<derive::DerivedRun> derived;
  std::vector<MemoryLimit> limits;  // what it is too large for: its GPUs, or this machine
  std::string fits;            // the GPU that it was found to fit; empty: not known, or it does not
  bool fits_narrowly = false;  // by an estimate whose error is larger than what stays free
  std::optional<plan::ScheduleCheck> schedule;
  std::optional<MemoryReport> memory;
  ScheduleWish wish = ScheduleWish::None;
};

base::Json to_json(const CheckReport& report);
std::string to_text(const CheckReport& report, Detail detail = Detail::Plain);

}  // namespace weft::cli
