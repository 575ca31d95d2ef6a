// Files: bounded reads, and writes that are either whole or not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/descriptor.h"

namespace weft::base {

// Whether two paths name one place, as they are written: "a" and "b/../a/" do.
bool is_same_path(const std::filesystem::path& a, const std::filesystem::path& b);

// The whole file as text; MissingInput when it is not there, SystemError when it is larger than
// `limit_bytes`.
std::string read_text(const std::filesystem::path& path, std::size_t limit_bytes = 64u << 20);

// A regular file read piece by piece, from any thread. Nothing is mapped: of a file that somebody
// cuts while it is read the reader gets an error, where a mapping would end the process.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);

  const std::string& name() const { return file_.named(); }
  std::uint64_t size() const { return size_; }  // when it was opened

  // Fills `out` from byte `begin` on. SystemError with the numbers where the file ends before.
  void read(std::uint64_t begin, std::span<std::byte> out) const;

 private:
  Descriptor file_;
  std::uint64_t size_;
};

// Writes a temporary beside the file that `path` names, then renames it: readers see the old file
// or the new one, never a part. Symbolic links are followed. What is there and is no regular file
// (a terminal, a pipe, /dev/null), or is where this process's standard output or error goes, is
// written into and stays what it is.
//
// A temporary is named <file>.<process>.<number>.partial and locked while it is written. Those that
// nobody holds any more, of processes that were killed, are removed by the next writer of the file.
void write_whole(const std::filesystem::path& path, std::string_view bytes);

// The same for content too big to hold: `write` gets a function that appends bytes.
using Append = std::function<void(std::string_view bytes)>;
void write_whole(const std::filesystem::path& path,
                 const std::function<void(const Append&)>& write);

// Makes the names in a folder as durable as write_whole makes the bytes of a file.
void sync_folder(const std::filesystem::path& folder);

// For commands that write only after long work: SystemError, now, where write_whole(path) of
// `bytes` bytes could not succeed as things are. Leaves nothing behind.
void require_writable(const std::filesystem::path& path, std::uint64_t bytes = 0);

}  // namespace weft::base
