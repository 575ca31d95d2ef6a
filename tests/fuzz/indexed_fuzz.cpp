// Any bytes as an .idx file beside a .bin whose size is the first byte: read or rejected with
// ConfigError. An accepted one is consistent.
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/data/indexed_index.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> idx(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  try {
    const weft::data::IndexedIndex index = weft::data::parse_index(idx, data[0], "fuzz");
    std::uint64_t tokens = 0;
    for (std::uint64_t i = 0; i < index.sequences(); ++i) {
      tokens += static_cast<std::uint64_t>(index.length(i));
    }
    if (tokens != index.tokens() || tokens * token_bytes(index.type()) != data[0]) std::abort();
    if (index.boundary(index.documents()) != static_cast<std::int64_t>(index.sequences())) {
      std::abort();
    }
  } catch (const weft::base::ConfigError&) {
  }
  return 0;
}
