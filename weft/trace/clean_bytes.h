// A file as a stream of bytes in which no control character is left, unpacked where it is packed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <streambuf>
#include <string>

#include "weft/base/file.h"
#include "weft/trace/gunzip.h"

namespace weft::trace {

// How far a long read is: bytes of the file on the disk that were read, and all of them.
using ReadWatch = std::function<void(std::uint64_t read, std::uint64_t all)>;

// Control characters come out as blanks: between the tokens of JSON they are, and inside its
// strings a blank says as much.
class CleanBytes : public std::streambuf {
 public:
  // ConfigError, while it is read, where there are more than `most` bytes, unpacked ones included.
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
  std::uint64_t next_ = 0;  // byte of the file
  std::uint64_t all_ = 0;   // bytes that came out so far
  std::int64_t blanks_ = 0;
  std::string buffer_;
};

}  // namespace weft::trace
