#include "weft/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "weft/cli/launcher.h"

namespace weft::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> first_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

bool speaks = false;  // set before signals are caught
std::string_view told_first;

void say(std::string_view text) {
  if (speaks) (void)!::write(STDERR_FILENO, text.data(), text.size());
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
  // Schedulers send SIGTERM some time after SIGUSR1, and the run may need that time.
  end_at_next(SIGINT);
  if (signal == SIGINT || signal == SIGTERM) end_at_next(SIGTERM);
  if (first) say(told_first);
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

// Under a launcher another rank may have been told, as schedulers do.
int interrupted_code() {
  const int signal = first_signal.load();
  return 128 + (signal == SIGINT || signal == SIGHUP ? signal : SIGTERM);
}

}  // namespace weft::cli
