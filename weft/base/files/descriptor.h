// Owner of an open file descriptor.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace weft::base {

class Descriptor {
 public:
  // Throws SystemError "cannot open '<named>'". `named` is the file's name in errors: a temporary
  // is named after the file it will become.
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode, std::string named);
  // Takes ownership of an open descriptor.
  Descriptor(int open, std::string named) : fd_(open), named_(std::move(named)) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  const std::string& named() const { return named_; }

  // Closes the file; some file systems report a failed write only here.
  void close();

 private:
  int fd_;
  std::string named_;
};

enum class Locked { Now, Elsewhere, NotSupported };

// Locks an open file without waiting. The lock belongs to the descriptor and ends with the process
// at the latest. NotSupported: a file system without locks.
Locked try_lock(const Descriptor& file);

}  // namespace weft::base
