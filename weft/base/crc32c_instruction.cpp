#include "weft/base/crc32c_instruction.h"

#include <array>
#include <cstring>

#include "weft/base/check.h"

#if defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#define WEFT_WITH_CRC32C __attribute__((target("+crc")))
#elif defined(__x86_64__)
#include <nmmintrin.h>
#define WEFT_WITH_CRC32C __attribute__((target("sse4.2")))
#else
#define WEFT_WITH_CRC32C
#endif

namespace weft::base {
namespace {

#if defined(__aarch64__)
bool is_there() { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
WEFT_WITH_CRC32C inline std::uint32_t add(std::uint32_t rest, std::uint64_t word) {
  return __crc32cd(rest, word);
}
WEFT_WITH_CRC32C inline std::uint32_t add(std::uint32_t rest, std::byte byte) {
  return __crc32cb(rest, static_cast<std::uint8_t>(byte));
}
#elif defined(__x86_64__)
bool is_there() { return __builtin_cpu_supports("sse4.2") != 0; }
WEFT_WITH_CRC32C inline std::uint32_t add(std::uint32_t rest, std::uint64_t word) {
  return static_cast<std::uint32_t>(_mm_crc32_u64(rest, word));
}
WEFT_WITH_CRC32C inline std::uint32_t add(std::uint32_t rest, std::byte byte) {
  return _mm_crc32_u8(rest, static_cast<std::uint8_t>(byte));
}
#else
bool is_there() { return false; }
std::uint32_t add(std::uint32_t, std::uint64_t) { UNREACHABLE("no instruction for CRC-32C"); }
std::uint32_t add(std::uint32_t, std::byte) { UNREACHABLE("no instruction for CRC-32C"); }
#endif

constexpr std::uint32_t kDivisor = 0x82f63b78;  // CRC-32C's, reflected
constexpr std::size_t kChainBytes = 4096;       // a power of two

// Linear map on a CRC register: one column per bit.
using Columns = std::array<std::uint32_t, 32>;

constexpr std::uint32_t image(const Columns& columns, std::uint32_t bits) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if ((bits >> i & 1) != 0) sum ^= columns[i];
  }
  return sum;
}

// Effect of a chain's length of zero bytes: one zero bit, doubled repeatedly.
constexpr Columns behind_a_chain() {
  Columns columns{};
  columns[0] = kDivisor;
  for (std::size_t i = 1; i < columns.size(); ++i) columns[i] = std::uint32_t{1} << (i - 1);
  for (std::size_t bits = 1; bits < 8 * kChainBytes; bits *= 2) {
    Columns twice{};
    for (std::size_t i = 0; i < columns.size(); ++i) twice[i] = image(columns, columns[i]);
    columns = twice;
  }
  return columns;
}

// The map in table form, one byte of the register at a time.
using Shift = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Shift make_shift() {
  Shift shift{};
  const Columns columns = behind_a_chain();
  for (std::size_t place = 0; place < shift.size(); ++place) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      shift[place][byte] = image(columns, byte << (8 * place));
    }
  }
  return shift;
}

constexpr Shift kShift = make_shift();

std::uint32_t shifted(std::uint32_t rest) {
  return kShift[0][rest & 0xff] ^ kShift[1][rest >> 8 & 0xff] ^ kShift[2][rest >> 16 & 0xff] ^
         kShift[3][rest >> 24];
}

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

bool has_crc32c_instruction() {
  static const bool has = is_there();
  return has;
}

// The instruction takes several cycles, and one can start per cycle. Three consecutive chains of
// bytes run at once and are combined at their end.
WEFT_WITH_CRC32C std::uint32_t crc32c_by_instruction(std::uint32_t before,
                                                     std::span<const std::byte> bytes) {
  std::uint32_t rest = before;
  while (bytes.size() >= 3 * kChainBytes) {
    const std::byte* from = bytes.data();
    std::uint32_t second = 0, third = 0;
    for (std::size_t i = 0; i < kChainBytes; i += sizeof(std::uint64_t)) {
      rest = add(rest, word_at(from + i));
      second = add(second, word_at(from + kChainBytes + i));
      third = add(third, word_at(from + 2 * kChainBytes + i));
    }
    rest = shifted(shifted(rest) ^ second) ^ third;
    bytes = bytes.subspan(3 * kChainBytes);
  }
  while (bytes.size() >= sizeof(std::uint64_t)) {
    rest = add(rest, word_at(bytes.data()));
    bytes = bytes.subspan(sizeof(std::uint64_t));
  }
  for (const std::byte byte : bytes) rest = add(rest, byte);
  return rest;
}

}  // namespace weft::base
