// A packed file (gzip) as the bytes that it was made from, piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/base/file.h"

struct z_stream_s;

namespace weft::trace {

// Bounds what a small file can unpack to: beyond kAlwaysRead bytes at most kMostUnpacked times the
// bytes that were read of it. Traces pack to a tenth or a thirtieth.
inline constexpr std::uint64_t kAlwaysRead = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMostUnpacked = 200;

class Gunzip {
 public:
  // `file` outlives it.
  explicit Gunzip(const base::InputFile& file);
  ~Gunzip();

  // Fills the beginning of `out` with the next bytes; 0: the end. ConfigError where the file is cut
  // off, is damaged, or unpacks to more than the bounds allow.
  std::size_t read(std::span<char> out);
  std::uint64_t taken() const { return next_; }  // bytes of the packed file so far

 private:
  void refill();

  const base::InputFile& file_;
  std::unique_ptr<z_stream_s> stream_;
  std::string packed_;          // what was read of the file and is not all unpacked
  std::uint64_t next_ = 0;      // byte of the file that is read next
  std::uint64_t unpacked_ = 0;  // bytes so far
  bool is_between_ = true;      // no member of the file is open: it may end here
};

}  // namespace weft::trace
