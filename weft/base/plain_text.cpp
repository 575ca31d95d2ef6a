#include "weft/base/plain_text.h"

#include <algorithm>
#include <string>

#include "weft/base/files/file.h"

namespace weft::base {
namespace {

constexpr std::uint64_t kLookedAt = 64 << 10;

// Length of a character by its first byte; 0: invalid first byte.
std::size_t length_of(unsigned char first) {
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

}  // namespace

bool is_plain_text(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = length_of(static_cast<unsigned char>(bytes[at]));
    if (length == 0) return false;
    const std::size_t end = std::min(at + length, bytes.size());
    for (std::size_t i = at + 1; i < end; ++i) {
      if ((static_cast<unsigned char>(bytes[i]) & 0xc0) != 0x80) return false;
    }
    at = end;
  }
  return true;
}

bool begins_as_plain_text(const std::filesystem::path& file) {
  const InputFile input(file);
  std::string head(std::min(input.size(), kLookedAt), '\0');
  input.read(0, std::as_writable_bytes(std::span(head)));
  return is_plain_text(head);
}

}  // namespace weft::base
