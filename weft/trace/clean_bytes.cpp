#include "weft/trace/clean_bytes.h"

#include <algorithm>
#include <array>
#include <span>

namespace weft::trace {
namespace {

constexpr std::uint64_t kPiece = 1u << 20;

bool is_control(char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f; }
bool is_line(char byte) { return byte == '\n' || byte == '\r' || byte == '\t'; }

}  // namespace

CleanBytes::CleanBytes(const std::filesystem::path& file) : file_(file) {}

bool CleanBytes::is_gzip() const {
  std::array<std::byte, 2> magic{};
  if (file_.size() < magic.size()) return false;
  file_.read(0, magic);
  return magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
}

CleanBytes::int_type CleanBytes::underflow() {
  const std::uint64_t bytes = std::min(kPiece, file_.size() - next_);
  if (bytes == 0) return traits_type::eof();
  buffer_.resize(bytes);
  file_.read(next_, std::as_writable_bytes(std::span(buffer_)));
  next_ += bytes;
  for (char& byte : buffer_) {
    if (!is_control(byte)) continue;
    if (!is_line(byte)) ++blanks_;
    byte = ' ';
  }
  setg(buffer_.data(), buffer_.data(), buffer_.data() + buffer_.size());
  return traits_type::to_int_type(buffer_.front());
}

}  // namespace weft::trace
