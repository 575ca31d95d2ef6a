#include "weft/base/parallel/thread.h"

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

void throw_no_thread(std::string_view what, const std::system_error& refused) {
  throw SystemError(
      text("cannot start {}: {}: this process may have no more threads, or no room for their "
           "stacks: use fewer ranks (world) or threads (runtime.threads_per_rank), or raise the "
           "limits (ulimit -u, -v; smaller stacks: ulimit -s)",
           what,
           refused.what()));
}

}  // namespace weft::base
