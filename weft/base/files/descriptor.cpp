#include "weft/base/files/descriptor.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

Descriptor::Descriptor(const std::filesystem::path& path, int flags, mode_t mode, std::string named)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)), named_(std::move(named)) {
  if (fd_ < 0) throw_errno(text("cannot open '{}'", named_));
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), named_(std::move(other.named_)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(named_, other.named_);
  return *this;
}

void Descriptor::close() {
  if (::close(std::exchange(fd_, -1)) != 0) throw_errno(text("cannot close '{}'", named_));
}

Locked try_lock(const Descriptor& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Locked::Now;
  return errno == EWOULDBLOCK ? Locked::Elsewhere : Locked::NotSupported;
}

}  // namespace weft::base
