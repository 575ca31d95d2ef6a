#include "weft/base/visible.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "weft/base/text.h"

namespace weft::base {
namespace {

struct CodeRange {
  std::uint32_t first, last;
};

// Code points of C1 controls and of Unicode's categories Cf, Zl and Zp.
constexpr std::array kFormat = std::to_array<CodeRange>({
    {0x80, 0x9f},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
    {0xe0020, 0xe007f},
});

bool is_format(std::uint32_t code) {
  const auto at = std::ranges::lower_bound(kFormat, code, {}, &CodeRange::last);
  return at != kFormat.end() && at->first <= code;
}

unsigned char byte_of(char c) { return static_cast<unsigned char>(c); }

// Length of a character by its first byte; 0: invalid first byte.
std::size_t length_by(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no UTF-8
};

Character first_of(std::string_view text) {
  const std::size_t bytes = length_by(byte_of(text.front()));
  if (bytes == 1) return {byte_of(text.front()), 1};
  if (bytes == 0 || bytes > text.size()) return {};
  std::uint32_t code = byte_of(text.front()) & (0xffu >> (bytes + 1));
  for (const char c : text.substr(1, bytes - 1)) {
    if ((byte_of(c) & 0xc0u) != 0x80u) return {};
    code = code << 6 | (byte_of(c) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

std::string escape_of(std::uint32_t code, Escapes escapes) {
  if (escapes == Escapes::JsonText) {
    if (code < 0x10000) return text("\\u{:04x}", code);
    const std::uint32_t rest = code - 0x10000;
    return text("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
  }
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code < 0x100) return text("\\x{:02x}", code);
  return code < 0x10000 ? text("\\u{:04x}", code) : text("\\U{:08x}", code);
}

bool is_plain(char c, Escapes escapes) {
  if (escapes != Escapes::Word && (c == '\n' || c == '\t')) return true;
  return byte_of(c) >= 0x20 && byte_of(c) < 0x7f;
}

}  // namespace

std::string visible(std::string_view raw, Escapes escapes) {
  const auto plain = [&](char c) { return is_plain(c, escapes); };
  if (std::ranges::all_of(raw, plain)) return std::string(raw);
  std::string seen;
  seen.reserve(raw.size() + 16);
  while (!raw.empty()) {
    if (plain(raw.front())) {
      seen += raw.front();
      raw.remove_prefix(1);
      continue;
    }
    const Character next = first_of(raw);
    if (next.bytes == 0) {
      seen += text("\\x{:02x}", byte_of(raw.front()));
    } else if (next.code < 0x20 || next.code == 0x7f || is_format(next.code)) {
      seen += escape_of(next.code, escapes);
    } else {
      seen += raw.substr(0, next.bytes);
    }
    raw.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return seen;
}

std::string_view shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  // A character has at most four bytes; all but the first begin with the bits 10.
  std::size_t end = bytes;
  while (end > 0 && bytes - end < 3 && (byte_of(text[end]) & 0xc0u) == 0x80u) --end;
  return text.substr(0, end);
}

}  // namespace weft::base
