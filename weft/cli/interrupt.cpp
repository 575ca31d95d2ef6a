#include "weft/cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace weft::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

bool seen_by_a_person = false;  // set before signals are caught

void note_interrupt(int signal) {
  interrupted.store(true);
  std::signal(signal, SIG_DFL);
  constexpr std::string_view kSaid = "\nstopping after this step; again to stop at once\n";
  if (seen_by_a_person) (void)!write(STDERR_FILENO, kSaid.data(), kSaid.size());
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  seen_by_a_person = isatty(STDERR_FILENO) == 1;
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  return interrupted;
}

}  // namespace weft::cli
