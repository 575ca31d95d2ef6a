// A file as a stream of bytes in which no control character is left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <streambuf>
#include <string>

#include "weft/base/file.h"

namespace weft::trace {

// Control characters come out as blanks: between the tokens of JSON they are, and inside its
// strings nobody misses them.
class CleanBytes : public std::streambuf {
 public:
  explicit CleanBytes(const std::filesystem::path& file);

  std::uint64_t size() const { return file_.size(); }
  std::int64_t blanks() const { return blanks_; }  // so far
  bool is_gzip() const;                            // before the first read

 protected:
  int_type underflow() override;

 private:
  base::InputFile file_;
  std::uint64_t next_ = 0;
  std::int64_t blanks_ = 0;
  std::string buffer_;
};

}  // namespace weft::trace
