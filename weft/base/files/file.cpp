#include "weft/base/files/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

// Without O_NONBLOCK, opening a pipe would wait for its writer; regular files ignore the flag.
constexpr int kReadFlags = O_RDONLY | O_NONBLOCK;

Descriptor open_input(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), kReadFlags | O_CLOEXEC);
  if (file >= 0) return Descriptor(file, path.string());
  if (const int code = errno; code == ENOENT || code == ENOTDIR) {
    throw MissingInput(text("cannot open '{}': {}", path.string(), std::strerror(code)));
  }
  throw_errno(text("cannot open '{}'", path.string()));
}

std::uint64_t regular_size(const Descriptor& file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_errno(text("cannot stat '{}'", file.named()));
  if (!S_ISREG(info.st_mode)) throw SystemError(text("'{}' is not a regular file", file.named()));
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace

bool is_same_path(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto plain = [](const std::filesystem::path& path) {
    return (std::filesystem::absolute(path) / "").lexically_normal();
  };
  return plain(a) == plain(b);
}

std::string read_text(const std::filesystem::path& path, std::size_t limit_bytes) {
  const Descriptor file = open_input(path);
  const std::uint64_t size = regular_size(file);
  if (size > limit_bytes) {
    throw SystemError(
        text("'{}' has {} bytes; at most {} are read here", path.string(), size, limit_bytes));
  }
  std::string all(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), all.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(text("cannot read '{}'", path.string()));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  all.resize(done);
  return all;
}

InputFile::InputFile(const std::filesystem::path& path)
    : file_(open_input(path)), size_(regular_size(file_)) {}

void InputFile::read(std::uint64_t begin, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(file_.get(),
                                out.data() + done,
                                out.size() - done,
                                static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(text("cannot read '{}'", name()));
    if (got == 0) {
      throw SystemError(
          text("'{}' ends at byte {}, {} bytes from {} on were to be read: it had {} bytes when it "
               "was opened, and something has cut it since",
               name(),
               regular_size(file_),
               out.size(),
               begin,
               size_));
    }
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace weft::base
