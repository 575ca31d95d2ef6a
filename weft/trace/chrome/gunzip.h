// Streaming gzip decompression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weft/base/files/file.h"

struct z_stream_s;

namespace weft::trace {

// Bounds against decompression bombs: beyond kAlwaysRead bytes, the output may be at most
// kMostUnpacked times the input. Traces compress to a tenth or a thirtieth.
inline constexpr std::uint64_t kAlwaysRead = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMostUnpacked = 200;

class Gunzip {
 public:
  // `file` must outlive this object.
  explicit Gunzip(const base::InputFile& file);
  ~Gunzip();

  // Fills the beginning of `out` with the next bytes; 0: the end. Throws ConfigError if the file is
  // cut off, is damaged, or exceeds the bounds.
  std::size_t read(std::span<char> out);
  std::uint64_t taken() const { return next_; }  // compressed bytes read so far

 private:
  void refill();

  const base::InputFile& file_;
  std::unique_ptr<z_stream_s> stream_;
  std::string packed_;          // compressed bytes read, not all unpacked yet
  std::uint64_t next_ = 0;      // next byte of the file
  std::uint64_t unpacked_ = 0;  // uncompressed bytes so far
  bool is_between_ = true;      // true between gzip members: the file may end here
};

}  // namespace weft::trace
