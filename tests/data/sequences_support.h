// Small indexed data sets.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "weft/base/files/file.h"
#include "weft/data/indexed_builder.h"

namespace weft::data {

// `count` documents of `length` tokens; every token of the i-th is `first` + i.
inline void write_sequences(const std::string& prefix, int count, int length, int first = 0) {
  IndexBuilder index(TokenType::U16);
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.insert(tokens.end(),
                  static_cast<std::size_t>(length),
                  static_cast<std::uint16_t>(first + i));
    index.add_tokens(static_cast<std::uint64_t>(length));
    index.end_document();
  }
  base::write_whole(prefix + ".bin",
                    {reinterpret_cast<const char*>(tokens.data()), 2 * tokens.size()});
  base::write_whole(prefix + ".idx", [&](const base::Append& append) { index.write(append); });
}

}  // namespace weft::data
