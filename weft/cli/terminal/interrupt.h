// Signals that ask a run to end: it stops after the current step, with everything written that it
// was asked to write. A Ctrl-C after any of them, or a second SIGTERM, ends the process at once.
//
//   SIGINT   Ctrl-C
//   SIGTERM  schedulers, kill
//   SIGHUP   the terminal is gone; often sent twice, so that more of them change nothing
//   SIGUSR1  tools/mpirun.sh sends it to every rank, and schedulers send it ahead of a time limit
#pragma once

#include <atomic>
#include <optional>
#include <string_view>

namespace weft::cli {

// Installs the handlers; the flag they set. (Signal handlers can only reach a global; this is the
// one place that has it.) A SIGHUP that is ignored stays ignored, as nohup wants it.
enum class Caught { All, ExceptSchedulers };  // SIGTERM and SIGUSR1 end the process at once
// `also` is one more signal that ends the run like SIGUSR1. `said`, which stays where it is, is
// told when one comes, with what stops at once: another Ctrl-C, or another signal.
inline constexpr std::string_view kStoppingRun = "stopping after this step";
inline constexpr std::string_view kEndingSearch = "ending the search";
const std::atomic<bool>& catch_interrupts(Caught caught = Caught::All,
                                          std::optional<int> also = std::nullopt,
                                          std::string_view said = kStoppingRun);

// The exit code of a run that such a signal ended: 130 for Ctrl-C, 129 for SIGHUP, 143 for others.
int interrupted_code();

}  // namespace weft::cli
