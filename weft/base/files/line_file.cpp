#include "weft/base/files/line_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::base {

LineFile::LineFile(const std::filesystem::path& path, const std::string& if_in_use)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND, 0644, path.string()) {
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) throw_errno(text("cannot stat '{}'", path.string()));
  regular_ = S_ISREG(info.st_mode);
  size_ = static_cast<std::uint64_t>(info.st_size);
  if (regular_ && try_lock(file_) == Locked::Elsewhere) throw SystemError(if_in_use);
}

void LineFile::cut(std::uint64_t bytes) {
  if (!regular_) return;
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) {
    throw_errno(text("cannot cut '{}'", file_.named()));
  }
  size_ = bytes;
}

void LineFile::append(std::string_view line) { append_bytes(text("{}\n", line)); }

void LineFile::append_bytes(std::string_view whole) {
  std::size_t done = 0;
  while (done < whole.size()) {
    const ssize_t put = ::write(file_.get(), whole.data() + done, whole.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      const int cause = errno;
      if (regular_ && done > 0) (void)!::ftruncate(file_.get(), static_cast<off_t>(size_));
      errno = cause;
      throw_errno(text("cannot write '{}'", file_.named()));
    }
    done += static_cast<std::size_t>(put);
  }
  size_ += whole.size();
}

}  // namespace weft::base
