// Chrome/Perfetto JSON of timelines: one process per rank, one track per lane, one marker per step.
// Arrows lead from awaited to waiting nodes, and from sends to receives. ui.perfetto.dev opens the
// file; chrome_read.h reads it back.
#pragma once

#include <span>
#include <string_view>

#include "weft/base/files/file.h"
#include "weft/trace/exposure/shortened.h"
#include "weft/trace/span.h"

namespace weft::trace {

// Appends the whole JSON text; times are relative to the earliest span.
void write_chrome(std::span<const Timeline> timelines, const base::Append& append);
// Appends a simulated step. The trace includes the run's config as YAML, because no folder keeps
// it. It also includes the micro-batches that the timelines leave out.
void write_simulated_chrome(std::span<const Timeline> timelines,
                            std::string_view config,
                            const Shortened& shortened,
                            const base::Append& append);

}  // namespace weft::trace
