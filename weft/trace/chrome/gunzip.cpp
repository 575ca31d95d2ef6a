#include "weft/trace/chrome/gunzip.h"

#include <zlib.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::trace {
namespace {

using base::text;

constexpr std::uint64_t kPacked = 1u << 18;
constexpr int kGzipWindow = 15 + 16;  // largest window, with a gzip header

}  // namespace

Gunzip::Gunzip(const base::InputFile& file) : file_(file), stream_(new z_stream_s{}) {
  if (inflateInit2(stream_.get(), kGzipWindow) != Z_OK) {
    throw base::SystemError("zlib has no memory to unpack with");
  }
}

Gunzip::~Gunzip() { inflateEnd(stream_.get()); }

void Gunzip::refill() {
  packed_.resize(std::min(kPacked, file_.size() - next_));
  file_.read(next_, std::as_writable_bytes(std::span(packed_)));
  next_ += packed_.size();
  stream_->next_in = reinterpret_cast<Bytef*>(packed_.data());
  stream_->avail_in = static_cast<uInt>(packed_.size());
}

std::size_t Gunzip::read(std::span<char> out) {
  stream_->next_out = reinterpret_cast<Bytef*>(out.data());
  stream_->avail_out = static_cast<uInt>(out.size());
  while (stream_->avail_out == out.size()) {
    if (stream_->avail_in == 0) refill();
    if (stream_->avail_in == 0) {
      if (is_between_) return 0;
      throw base::ConfigError(
          text("the packed file ends after {} bytes, in the middle of its data: copy it again",
               file_.size()));
    }
    if (is_between_) {  // zero padding of the last block, on some media
      while (stream_->avail_in > 0 && *stream_->next_in == 0)
        ++stream_->next_in, --stream_->avail_in;
      if (stream_->avail_in == 0) continue;
    }
    is_between_ = false;
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      is_between_ = true;
      inflateReset(stream_.get());  // concatenated gzip files have several members
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      throw base::ConfigError(text("the packed file is damaged near byte {} ({}): copy it again",
                                   next_ - stream_->avail_in,
                                   stream_->msg == nullptr ? "zlib" : stream_->msg));
    }
  }
  const std::size_t got = out.size() - stream_->avail_out;
  unpacked_ += got;
  if (unpacked_ > std::max(kAlwaysRead, kMostUnpacked * next_)) {
    throw base::ConfigError(
        text("the packed file unpacks to more than {} times its size, as no trace does",
             kMostUnpacked));
  }
  return got;
}

}  // namespace weft::trace
