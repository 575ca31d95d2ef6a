// File that grows by whole lines or records. Other processes may read it; one process writes it at
// a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "weft/base/files/descriptor.h"

namespace weft::base {

class LineFile {
 public:
  // Creates the file, or opens an existing one and keeps its content until clear(). Locked while
  // open: throws SystemError with `if_in_use` if another process has it. Files that are not regular
  // (/dev/null, a pipe) are written without a lock.
  LineFile(const std::filesystem::path& path, const std::string& if_in_use);

  void clear() { cut(0); }
  // Truncates to the first `bytes`, which must be whole lines.
  void cut(std::uint64_t bytes);
  // Appends the line and its end with one write, so that readers never see a part. If the write
  // fails, throws SystemError and removes what was written; later lines may succeed.
  void append(std::string_view line);
  // Appends bytes that form a whole record.
  void append_bytes(std::string_view whole);

 private:
  Descriptor file_;
  bool regular_ = false;
  std::uint64_t size_ = 0;  // bytes appended whole
};

}  // namespace weft::base
