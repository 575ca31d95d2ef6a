// Chrome/Perfetto JSON of timelines: a process a rank, a track a lane, a marker a step, arrows
// from what was waited for to what waited, and from sends to receives. ui.perfetto.dev opens it,
// and chrome_read.h reads it back.
#pragma once

#include <span>
#include <string_view>

#include "weft/base/file.h"
#include "weft/trace/shortened.h"
#include "weft/trace/span.h"

namespace weft::trace {

// Appends the whole JSON text; times start at the earliest span.
void write_chrome(std::span<const Timeline> timelines, const base::Append& append);
// The same of a step that no machine ran: with the config of the run, as YAML, which no folder
// keeps beside it, and what stands for the micro-batches that it does not show.
void write_simulated_chrome(std::span<const Timeline> timelines,
                            std::string_view config,
                            const Shortened& shortened,
                            const base::Append& append);

}  // namespace weft::trace
