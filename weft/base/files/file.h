// Files: bounded reads, and atomic writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/files/descriptor.h"

namespace weft::base {

// True if two paths, as written, name one place: "a" and "b/../a/" do.
bool is_same_path(const std::filesystem::path& a, const std::filesystem::path& b);

// Whole file as text. Throws MissingInput if the file does not exist, SystemError if it exceeds
// `limit_bytes`.
std::string read_text(const std::filesystem::path& path, std::size_t limit_bytes = 64u << 20);

// Regular file for random reads from any thread. The file is not mapped: if another process
// truncates it, a read throws, while access to a mapping would kill this process.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);

  const std::string& name() const { return file_.named(); }
  std::uint64_t size() const { return size_; }  // size when it was opened

  // Fills `out` from byte `begin` on. Throws SystemError with the numbers if the file is too short.
  void read(std::uint64_t begin, std::span<std::byte> out) const;

 private:
  Descriptor file_;
  std::uint64_t size_;
};

// Writes a temporary beside the file, then renames it: readers see the old file or the new one,
// never a part. Symbolic links are followed. A target is written in place if it is no regular file
// (a terminal, a pipe, /dev/null). So is this process's standard output or error.
//
// A temporary is named <file>.<process>.<number>.partial and is locked while it is written. The
// next writer of the file removes unlocked ones, left by killed processes.
void write_whole(const std::filesystem::path& path, std::string_view bytes);

// Variant for large content: `write` gets a function that appends bytes.
using Append = std::function<void(std::string_view bytes)>;
void write_whole(const std::filesystem::path& path,
                 const std::function<void(const Append&)>& write);

// Makes the names in a folder durable, as write_whole does for the bytes of a file.
void sync_folder(const std::filesystem::path& folder);

// Check before long work: throws SystemError now if write_whole(path) of `bytes` bytes could not
// succeed. Leaves no file behind.
void require_writable(const std::filesystem::path& path, std::uint64_t bytes = 0);

}  // namespace weft::base
