// File as a stream of bytes without control characters, unpacked if it is a gzip file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <streambuf>
#include <string>

#include "weft/base/files/file.h"
#include "weft/trace/chrome/gunzip.h"

namespace weft::trace {

// Progress of a long read: bytes read from the file, and its size on disk.
using ReadWatch = std::function<void(std::uint64_t read, std::uint64_t all)>;

// Control characters become blanks: between JSON tokens they are white space, and inside strings a
// blank serves as well.
class CleanBytes : public std::streambuf {
 public:
  // Reading throws ConfigError after `most` bytes, counted after unpacking.
  CleanBytes(const std::filesystem::path& file, std::uint64_t most, ReadWatch watch);

  std::uint64_t size() const { return file_.size(); }  // on the disk
  std::int64_t blanks() const { return blanks_; }      // so far

 protected:
  int_type underflow() override;

 private:
  bool is_gzip() const;
  std::size_t read_plain();

  base::InputFile file_;
  std::uint64_t most_;
  ReadWatch watch_;
  std::optional<Gunzip> gunzip_;
  std::uint64_t next_ = 0;  // next byte of the file
  std::uint64_t all_ = 0;   // bytes delivered so far
  std::int64_t blanks_ = 0;
  std::string buffer_;
};

}  // namespace weft::trace
