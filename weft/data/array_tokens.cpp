#include "weft/data/array_tokens.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::data {
namespace {

using base::text;

constexpr std::uint64_t kChunk = std::uint64_t{1} << 16;  // tokens

std::string place(const std::string& name, const NpyArray& array, std::uint64_t token) {
  if (array.dimensions == 1) return text("'{}', token {}", name, token);
  return text("'{}', row {}, token {}", name, token / array.columns, token % array.columns);
}

}  // namespace

NpyArray npy_array(const base::InputFile& file) {
  std::vector<std::byte> head(std::min<std::uint64_t>(file.size(), kNpyHeadBytes));
  file.read(0, head);
  return parse_npy(head, file.size(), file.name());
}

NpyArray raw_array(const base::InputFile& file, IntegerType type) {
  const std::uint64_t width = bytes_of(type);
  if (file.size() % width != 0) {
    throw base::ConfigError(
        text("'{}' has {} bytes, which is no whole number of {} ({} bytes each): give the type it "
             "was written with",
             file.name(),
             file.size(),
             word(type),
             width));
  }
  return {.type = type, .dimensions = 1, .rows = 1, .columns = file.size() / width, .begin = 0};
}

void read_array(const base::InputFile& file, const NpyArray& array, TokenSink& sink) {
  const std::uint64_t width = bytes_of(array.type);
  const std::uint64_t total = array.rows * array.columns;
  std::vector<std::byte> bytes(std::min(total, kChunk) * width);
  std::vector<std::int64_t> ids(std::min(total, kChunk));
  for (std::uint64_t first = 0; first < total; first += kChunk) {
    const std::uint64_t count = std::min(kChunk, total - first);
    const std::span<std::byte> piece = std::span(bytes).first(count * width);
    file.read(array.begin + first * width, piece);
    widen(array.type, piece, std::span(ids).first(count));
    for (std::uint64_t at = first; at < first + count;) {
      const std::uint64_t row_left = array.columns - at % array.columns;
      const std::uint64_t taken = std::min(first + count - at, row_left);
      sink.add(std::span(ids).subspan(at - first, taken),
               [&](std::size_t i) { return place(file.name(), array, at + i); });
      if (taken == row_left) sink.end_document();
      at += taken;
    }
    sink.reached(array.begin + (first + count) * width);
  }
}

}  // namespace weft::data
