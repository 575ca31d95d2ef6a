// A file that grows by whole lines, or by whole records, while others may read it, and that one
// process writes at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "weft/base/descriptor.h"

namespace weft::base {

class LineFile {
 public:
  // Makes the file, or takes the one that is there; its content stays until clear(). Locked as long
  // as it is open: SystemError with `if_in_use` where another process has it. What is no regular
  // file (/dev/null, a pipe) is written into and not locked.
  LineFile(const std::filesystem::path& path, const std::string& if_in_use);

  void clear() { cut(0); }
  // Leaves the first `bytes`, which are whole lines.
  void cut(std::uint64_t bytes);
  // Appends the line and its end with one write, so that a reader never sees a part of it.
  // SystemError where it cannot be written whole; nothing of it is left then, and a later line may
  // succeed.
  void append(std::string_view line);
  // The same for bytes that are a whole of their own.
  void append_bytes(std::string_view whole);

 private:
  Descriptor file_;
  bool regular_ = false;
  std::uint64_t size_ = 0;  // of what was appended whole
};

}  // namespace weft::base
