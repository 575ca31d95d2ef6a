// Splits a command line that was pasted as one quoted word, as a shell would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::words {

// Words of the first command that names a Python program, otherwise of the first command. Quotes
// and backslashes work as in a shell; variables stay unexpanded.
std::vector<std::string> shell_words(std::string_view line);

}  // namespace weft::words
