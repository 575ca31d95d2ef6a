#include "weft/trace/chrome/clean_bytes.h"

#include <algorithm>
#include <array>
#include <span>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::trace {
namespace {

constexpr std::uint64_t kPiece = 1u << 20;

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f; }
bool is_line(char byte) { return byte == '\n' || byte == '\r' || byte == '\t'; }

}  // namespace

CleanBytes::CleanBytes(const std::filesystem::path& file, std::uint64_t most, ReadWatch watch)
    : file_(file), most_(most), watch_(std::move(watch)) {
  if (is_gzip()) gunzip_.emplace(file_);
}

bool CleanBytes::is_gzip() const {
  std::array<std::byte, 2> magic{};
  if (file_.size() < magic.size()) return false;
  file_.read(0, magic);
  return magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
}

std::size_t CleanBytes::read_plain() {
  const std::uint64_t bytes = std::min(kPiece, file_.size() - next_);
  file_.read(next_, std::as_writable_bytes(std::span(buffer_).first(bytes)));
  next_ += bytes;
  return bytes;
}

CleanBytes::int_type CleanBytes::underflow() {
  buffer_.resize(kPiece);
  const std::size_t bytes = gunzip_ ? gunzip_->read(buffer_) : read_plain();
  if (bytes == 0) return traits_type::eof();
  all_ += bytes;
  if (all_ > most_) {
    throw base::ConfigError(base::text("a trace of at most {} is read: trace fewer steps or ranks",
                                       base::human_bytes(static_cast<double>(most_))));
  }
  if (watch_) watch_(gunzip_ ? gunzip_->taken() : next_, file_.size());
  for (char& byte : std::span(buffer_).first(bytes)) {
    if (!is_control(byte)) continue;
    if (!is_line(byte)) ++blanks_;
    byte = ' ';
  }
  setg(buffer_.data(), buffer_.data(), buffer_.data() + bytes);
  return traits_type::to_int_type(buffer_.front());
}

}  // namespace weft::trace
