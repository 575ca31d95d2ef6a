// Ctrl-C: the first asks the run to stop at the end of its step, the second ends the process.
#pragma once

#include <atomic>

namespace weft::cli {

// Installs the handlers for SIGINT and SIGTERM; the flag they set. (Signal handlers can only reach
// a global; this is the one place that has it.)
const std::atomic<bool>& catch_interrupts();

}  // namespace weft::cli
