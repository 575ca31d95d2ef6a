#include "weft/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : Descriptor(path, flags, 0, path) {}
  // `named` is what an error calls it.
  Descriptor(const std::filesystem::path& path,
             int flags,
             mode_t mode,
             const std::filesystem::path& named)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (fd_ < 0) throw_errno(text("cannot open '{}'", named.string()));
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

  // Some file systems report a failed write no earlier than here.
  void close(const std::filesystem::path& path) {
    if (::close(std::exchange(fd_, -1)) != 0) throw_errno(text("cannot close '{}'", path.string()));
  }

 private:
  int fd_;
};

// Without O_NONBLOCK, opening a pipe would wait for its writer; regular files ignore the flag.
constexpr int kReadFlags = O_RDONLY | O_NONBLOCK;

std::size_t regular_size(const Descriptor& file, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_errno(text("cannot stat '{}'", path.string()));
  if (!S_ISREG(info.st_mode)) {
    throw SystemError(text("'{}' is not a regular file", path.string()));
  }
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

std::string read_text(const std::filesystem::path& path, std::size_t limit_bytes) {
  const Descriptor file(path, kReadFlags);
  const std::size_t size = regular_size(file, path);
  if (size > limit_bytes) {
    throw SystemError(
        text("'{}' has {} bytes; at most {} are read here", path.string(), size, limit_bytes));
  }
  std::string all(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), all.data() + done, size - done);
    if (got < 0) throw_errno(text("cannot read '{}'", path.string()));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  all.resize(done);
  return all;
}

void write_whole(const std::filesystem::path& path, std::string_view bytes) {
  write_whole(path, [&](const Append& append) { append(bytes); });
}

void write_whole(const std::filesystem::path& path,
                 const std::function<void(const Append&)>& write) {
  std::filesystem::path temporary = path;
  temporary += text(".{}.partial", ::getpid());
  try {
    Descriptor file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644, path);
    write([&](std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
        if (put < 0) throw_errno(text("cannot write '{}'", path.string()));
        bytes.remove_prefix(static_cast<std::size_t>(put));
      }
    });
    if (::fsync(file.get()) != 0) throw_errno(text("cannot sync '{}'", path.string()));
    file.close(temporary);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
      throw_errno(text("cannot rename '{}' to '{}'", temporary.string(), path.string()));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

Mapping::Mapping(const std::filesystem::path& path) {
  const Descriptor file(path, kReadFlags);
  size_ = regular_size(file, path);
  if (size_ == 0) return;
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (at == MAP_FAILED) throw_errno(text("cannot map '{}'", path.string()));
  data_ = static_cast<const std::byte*>(at);
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace weft::base
