// Token ids from JSON lines: a document a line, as a list of integers or as an object that has one
// under a key.
#pragma once

#include <string>

#include "weft/base/file.h"
#include "weft/data/token_sink.h"

namespace weft::data {

// Lines may be this long; one of them is held at a time.
inline constexpr std::size_t kLongestLine = std::size_t{256} << 20;

// Blank lines are passed over. ConfigError names the file, the line and the place in it.
void read_jsonl(const base::InputFile& file,
                const std::string& key,
                TokenSink& sink,
                std::size_t longest_line = kLongestLine);

}  // namespace weft::data
