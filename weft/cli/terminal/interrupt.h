// Signals that ask a run to end: it stops after the current step and writes all requested output. A
// Ctrl-C after any of them, or a second SIGTERM, kills the process.
//
// SIGINT: Ctrl-C.
// SIGTERM: schedulers, kill.
// SIGHUP: lost terminal; often sent twice, so repetitions have no effect.
// SIGUSR1: tools/mpirun.sh sends it to every rank, and schedulers send it before a time limit.
#pragma once

#include <atomic>
#include <optional>
#include <string_view>

namespace weft::cli {

// Installs the handlers; returns their flag. (Signal handlers can only reach a global; this is the
// only one.) An ignored SIGHUP stays ignored, as nohup requires.
enum class Caught { All, ExceptSchedulers };  // SIGTERM and SIGUSR1 end the process at once
// `also`: another signal treated like SIGUSR1. `said`, which must stay valid, is printed when a
// signal comes, with the way to stop at once.
inline constexpr std::string_view kStoppingRun = "stopping after this step";
inline constexpr std::string_view kEndingSearch = "ending the search";
const std::atomic<bool>& catch_interrupts(Caught caught = Caught::All,
                                          std::optional<int> also = std::nullopt,
                                          std::string_view said = kStoppingRun);

// Exit code of a run ended by such a signal: 130 for Ctrl-C, 129 for SIGHUP, 143 for others.
int interrupted_code();

}  // namespace weft::cli
