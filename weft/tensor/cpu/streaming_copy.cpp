#include "weft/tensor/cpu/streaming_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weft::tensor::cpu {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLine = 64;  // written whole, otherwise memory is read first

void stream_line(std::byte* to, const std::byte* from) {
  for (std::size_t at = 0; at < kLine; at += sizeof(__m128i)) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at));
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), values);
  }
}

}  // namespace

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t past_line = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = std::min(bytes, past_line == 0 ? 0 : kLine - past_line);
  const std::size_t end = head + (bytes - head) / kLine * kLine;
  std::memcpy(to, from, head);
  for (std::size_t at = head; at < end; at += kLine) stream_line(to + at, from + at);
  std::memcpy(to + end, from + end, bytes - end);
  _mm_sfence();  // readers that see the end see all of it
}

#else

void streaming_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

#endif

}  // namespace weft::tensor::cpu
