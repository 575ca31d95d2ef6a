#include "weft/cli/terminal/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "weft/cli/run/launcher.h"

namespace weft::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> first_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

bool speaks = false;  // set before signals are caught
std::string_view told_first;

// Prints in a signal handler, with one write so that the lines of ranks do not mix.
void say(std::string_view doing, std::string_view way_out) {
  if (!speaks) return;
  std::array<char, 160> line{};
  std::size_t end = 0;
  for (const std::string_view part :
       {std::string_view("\n"), doing, way_out, std::string_view("\n")}) {
    const std::size_t count = std::min(part.size(), line.size() - end);
    std::copy_n(part.data(), count, line.data() + end);
    end += count;
  }
  (void)!::write(STDERR_FILENO, line.data(), end);
}

// Hint for an immediate end, by the received signal.
std::string_view way_out_of(int signal) {
  if (signal == SIGINT) return "; press Ctrl-C again to stop at once";
  if (signal == SIGTERM) return "; a second SIGTERM stops at once";
  return "; SIGINT stops at once";
}

void end_at_next(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
}

void note_interrupt(int signal) {
  const int error = errno;
  int none = 0;
  const bool first = first_signal.compare_exchange_strong(none, signal);
  interrupted.store(true);
  // Schedulers send SIGTERM some time after SIGUSR1; the run may need that time.
  end_at_next(SIGINT);
  if (signal == SIGINT || signal == SIGTERM) end_at_next(SIGTERM);
  if (first) say(told_first, way_out_of(signal));
  errno = error;
}

void handle(int signal) {
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

const std::atomic<bool>& catch_interrupts(Caught caught,
                                          std::optional<int> also,
                                          std::string_view said) {
  speaks = launcher_rank() == 0;
  told_first = said;
  handle(SIGINT);
  if (!is_ignored(SIGHUP)) handle(SIGHUP);
  if (caught == Caught::All) {
    for (const int signal : {SIGTERM, SIGUSR1}) handle(signal);
    if (also) handle(*also);
  }
  return interrupted;
}

// Under a launcher another rank may have received the signal.
int interrupted_code() {
  const int signal = first_signal.load();
  return 128 + (signal == SIGINT || signal == SIGHUP ? signal : SIGTERM);
}

}  // namespace weft::cli
