#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::base {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";

std::optional<struct stat> stat_of(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return info;
  return std::nullopt;
}

// Standard output or error, if it leads to that file.
std::optional<int> stream_to(const struct stat& target) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat info {};
    if (::fstat(stream, &info) == 0 && info.st_dev == target.st_dev &&
        info.st_ino == target.st_ino) {
      return stream;
    }
  }
  return std::nullopt;
}

// End of a chain of symbolic links, which need not exist.
fs::path followed(const fs::path& path) {
  constexpr int kMostLinks = 40;
  fs::path at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    const fs::path next = fs::read_symlink(at, error);
    if (error) return at;
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  throw SystemError(text("cannot write '{}': too many symbolic links", path.string()));
}

void write_all(const Descriptor& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw_errno(text("cannot write '{}'", file.named()));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

// Devices, pipes and the like have no size and are not replaced.
Descriptor open_in_place(const fs::path& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) {
    throw SystemError(text("cannot write '{}': it is a folder", path.string()));
  }
  if (const std::optional<int> stream = stream_to(info)) {
    const int copy = ::fcntl(*stream, F_DUPFD_CLOEXEC, 3);
    if (copy < 0) throw_errno(text("cannot open '{}'", path.string()));
    return Descriptor(copy, path.string());
  }
  return Descriptor(path, O_WRONLY, 0, path.string());
}

bool is_written_in_place(const struct stat& info) {
  return !S_ISREG(info.st_mode) || stream_to(info).has_value();
}

// Large files bypass the system's page cache if possible: they are not read soon, and copying into
// the cache would take most of the write's CPU time.
class DirectSink {
 public:
  explicit DirectSink(const Descriptor& file) : file_(file) {}

  void append(std::string_view bytes) {
    if (!buffer_) take_buffer();
    while (!bytes.empty()) {
      const std::size_t count = std::min(bytes.size(), kBytes - filled_);
      std::memcpy(buffer_.get() + filled_, bytes.data(), count);
      filled_ += count;
      bytes.remove_prefix(count);
      if (filled_ == kBytes) write_full();
    }
  }

  // Writes the remaining bytes.
  void finish() {
    if (is_direct_) leave_direct();
    write_all(file_, {buffer_.get(), filled_});
    filled_ = 0;
  }

 private:
  static constexpr std::size_t kBytes = 4 << 20, kHugePage = 2 << 20;

  // Uses huge pages if available: looking up each small page for every write takes more CPU time
  // than filling the buffer.
  void take_buffer() {
    buffer_.reset(static_cast<char*>(std::aligned_alloc(kHugePage, kBytes)));
    if (!buffer_) throw std::bad_alloc();
    ::madvise(buffer_.get(), kBytes, MADV_HUGEPAGE);
  }

  // EINVAL: the disk wants more alignment, or the file system has no direct writes.
  void write_full() {
    if (!is_asked_) is_direct_ = ::fcntl(file_.get(), F_SETFL, O_DIRECT) == 0;
    is_asked_ = true;
    std::string_view rest(buffer_.get(), kBytes);
    while (is_direct_ && !rest.empty()) {
      const ssize_t put = ::write(file_.get(), rest.data(), rest.size());
      if (put >= 0) {
        rest.remove_prefix(static_cast<std::size_t>(put));
      } else if (errno == EINVAL) {
        leave_direct();
      } else if (errno != EINTR) {
        throw_errno(text("cannot write '{}'", file_.named()));
      }
    }
    write_all(file_, rest);
    filled_ = 0;
  }

  void leave_direct() {
    ::fcntl(file_.get(), F_SETFL, 0);
    is_direct_ = false;
  }

  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  const Descriptor& file_;
  std::unique_ptr<char, Free> buffer_;
  std::size_t filled_ = 0;
  bool is_asked_ = false, is_direct_ = false;
};

// Temporary beside its target; removed with its owner unless it was renamed to the target.
class Temporary {
 public:
  Temporary(const fs::path& target, const std::string& named)
      : target_(target), file_(make(target, named)), sink_(file_) {}
  ~Temporary() {
    if (!kept_) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  void append(std::string_view bytes) { sink_.append(bytes); }

  void become_target() {
    sink_.finish();
    if (::fsync(file_.get()) != 0) throw_errno(text("cannot sync '{}'", file_.named()));
    // Permissions are the owner's choice and outlive the content.
    if (const auto old = stat_of(target_)) (void)!::fchmod(file_.get(), old->st_mode & 07777);
    if (std::rename(path_.c_str(), target_.c_str()) != 0) {
      throw_errno(text("cannot rename '{}' to '{}'", path_.string(), target_.string()));
    }
    kept_ = true;
    file_.close();
  }

 private:
  // Repeats until a name is free and the locked file still exists: before the lock, another writer
  // may have removed it as a leftover.
  Descriptor make(const fs::path& target, const std::string& named) {
    for (int number = 0;; ++number) {
      path_ = target;
      path_ += text(".{}.{}{}", ::getpid(), number, kPartial);
      const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      if (fd < 0 && errno == EEXIST) continue;
      if (fd < 0) throw_errno(text("cannot write '{}'", named));
      Descriptor file(fd, named);
      ::flock(fd, LOCK_EX);
      struct stat info {};
      if (::fstat(fd, &info) == 0 && info.st_nlink > 0) return file;
    }
  }

  fs::path target_, path_;
  Descriptor file_;
  DirectSink sink_;
  bool kept_ = false;
};

bool is_temporary_of(const std::string& name, const std::string& target) {
  if (!name.starts_with(target + ".") || !name.ends_with(kPartial)) return false;
  const std::string_view middle(name.data() + target.size(),
                                name.size() - target.size() - kPartial.size());
  return middle.size() > 1 && middle.find_first_not_of(".0123456789") == std::string_view::npos;
}

// Before this process locked the file, its writer may have renamed it, and another may have taken
// the name. The lock holder keeps the name: a writer renames only a file that it has locked.
bool is_still_at(const Descriptor& file, const fs::path& path) {
  struct stat here {};
  struct stat there {};
  return ::fstat(file.get(), &here) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

void remove_left_temporaries(const fs::path& target) {
  std::error_code error;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path path = at->path();
    if (!is_temporary_of(path.filename().string(), target.filename().string())) continue;
    const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    const Descriptor file(fd, path.string());
    if (try_lock(file) == Locked::Now && is_still_at(file, path)) ::unlink(path.c_str());
  }
}

void require_room(const fs::path& target, const std::string& named, std::uint64_t bytes) {
  std::error_code error;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < bytes) {
    throw SystemError(
        text("'{}' takes {} bytes, and its disk has room for {}: free some, or write "
             "elsewhere",
             named,
             bytes,
             space.available));
  }
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < bytes) {
    throw SystemError(
        text("'{}' takes {} bytes, and no file of this process may have more than "
             "{} (ulimit -f)",
             named,
             bytes,
             static_cast<std::uint64_t>(limit.rlim_cur)));
  }
}

}  // namespace

void write_whole(const fs::path& path, std::string_view bytes) {
  write_whole(path, [&](const Append& append) { append(bytes); });
}

void write_whole(const fs::path& path, const std::function<void(const Append&)>& write) {
  if (const auto info = stat_of(path); info && is_written_in_place(*info)) {
    Descriptor file = open_in_place(path, *info);
    write([&](std::string_view bytes) { write_all(file, bytes); });
    return file.close();
  }
  const fs::path target = followed(path);
  remove_left_temporaries(target);
  Temporary temporary(target, path.string());
  write([&](std::string_view bytes) { temporary.append(bytes); });
  temporary.become_target();
}

void sync_folder(const fs::path& folder) {
  const Descriptor file(folder, O_RDONLY | O_DIRECTORY, 0, folder.string());
  // EINVAL: the file system cannot sync a folder.
  if (::fsync(file.get()) != 0 && errno != EINVAL) {
    throw_errno(text("cannot sync '{}'", folder.string()));
  }
}

void require_writable(const fs::path& path, std::uint64_t bytes) {
  if (const auto info = stat_of(path); info && is_written_in_place(*info)) {
    // A pipe is not opened: its reader would take the close for the end.
    if (S_ISDIR(info->st_mode)) open_in_place(path, *info);
    if (::access(path.c_str(), W_OK) != 0) throw_errno(text("cannot write '{}'", path.string()));
    return;
  }
  const fs::path target = followed(path);
  remove_left_temporaries(target);
  const Temporary temporary(target, path.string());
  require_room(target, path.string(), bytes);
}

}  // namespace weft::base
