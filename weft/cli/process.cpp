#include "weft/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace weft::cli {

void prepare_process() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open returns the lowest free number, which is the closed stream's.
    if (::fcntl(stream, F_GETFD) == -1) (void)!::open("/dev/null", O_RDWR);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool reader_has_left() {
  struct pollfd output {
    .fd = STDOUT_FILENO, .events = 0, .revents = 0
  };
  return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace weft::cli
