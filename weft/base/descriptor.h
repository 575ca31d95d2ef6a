// An open file of the system, closed with its owner.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace weft::base {

class Descriptor {
 public:
  // SystemError "cannot open '<named>'" where it does not open. `named` is what errors call it: a
  // temporary goes by the name of the file it will become.
  Descriptor(const std::filesystem::path& path, int flags, mode_t mode, std::string named);
  // Takes a descriptor that is open already.
  Descriptor(int open, std::string named) : fd_(open), named_(std::move(named)) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  const std::string& named() const { return named_; }

  // Some file systems report a failed write no earlier than here.
  void close();

 private:
  int fd_;
  std::string named_;
};

enum class Locked { Now, Elsewhere, NotSupported };

// Takes the lock of an open file without waiting. It belongs to the descriptor: the end of the
// process, however it comes, releases it. File systems without locks say NotSupported.
Locked try_lock(const Descriptor& file);

}  // namespace weft::base
