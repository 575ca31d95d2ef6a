#include "weft/base/files/pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

namespace fs = std::filesystem;

class Source {
 public:
  // O_NONBLOCK: opening a pipe without a writer would otherwise block.
  explicit Source(const fs::path& path)
      : name_(shown(path.string())), fd_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (fd_ < 0) throw_errno(text("cannot open '{}'", name_));
  }
  ~Source() { ::close(fd_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Waits for bytes if a writer is connected; empty at the end.
  std::string_view read() {
    while (true) {
      const ssize_t got = ::read(fd_, block_, sizeof block_);
      if (got >= 0) return {block_, static_cast<std::size_t>(got)};
      if (errno != EAGAIN && errno != EINTR) throw_errno(text("cannot read '{}'", name_));
      pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, -1);
    }
  }

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int fd_;
  char block_[4096];
};

}  // namespace

bool is_pipe(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::is_fifo(status) || fs::is_character_file(status);
}

std::string read_pipe(const fs::path& path, std::size_t limit_bytes) {
  Source source(path);
  std::string all;
  for (std::string_view block = source.read(); !block.empty(); block = source.read()) {
    all += block;
    if (all.size() > limit_bytes) {
      throw SystemError(text("'{}' gives more than {} bytes", source.name(), limit_bytes));
    }
  }
  return all;
}

}  // namespace weft::base
