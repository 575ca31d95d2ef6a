// Findings of `weft check` as text and JSON.
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

// False if words or files are unreadable; then nothing else is judged.
enum class Readable { Yes, No };
enum class ScheduleWish { None, Verify };
enum class MemoryWish { None, Predict };
// Plain: without automatic settings and overlap modes.
enum class Detail { Plain, Verbose };

struct CheckReport {
  std::string recipe;  // empty: the defaults
  Readable readable = Readable::Yes;
  rules::Verdict verdict;
  // Set if the run is legal:
  std::vector<rules::Note> advice;
  std::vector<rules::OverlapMode> modes;
  std::optional<derive::DerivedRun> derived;
  std::vector<MemoryLimit> limits;  // limits it exceeds: its GPUs, or this machine
  std::string fits;                 // GPU that it fits; empty: unknown, or it does not fit
  bool fits_narrowly = false;  // true: fits by an estimate with less free memory than its error
  std::optional<plan::ScheduleCheck> schedule;
  std::optional<MemoryReport> memory;
  ScheduleWish wish = ScheduleWish::None;
};

base::Json to_json(const CheckReport& report);
std::string to_text(const CheckReport& report, Detail detail = Detail::Plain);

}  // namespace weft::cli
