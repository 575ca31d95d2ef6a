// Token ids from JSON lines. A line is a document: a list of integers, or an object with such a
// list under a key.
#pragma once

#include <string>

#include "weft/base/files/file.h"
#include "weft/data/token_sink.h"

namespace weft::data {

// Longest line; one line is in memory at a time.
inline constexpr std::size_t kLongestLine = std::size_t{256} << 20;

// Skips blank lines. Throws ConfigError with the file, the line and the place in it.
void read_jsonl(const base::InputFile& file,
                const std::string& key,
                TokenSink& sink,
                std::size_t longest_line = kLongestLine);

}  // namespace weft::data
