// A command line that was pasted as one quoted word, taken apart as a shell would.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::words {

// The words of the first command that names a Python program, or of the first command where none
// does. Quotes and backslashes mean what they mean in a shell; a variable stays as it is written.
std::vector<std::string> shell_words(std::string_view line);

}  // namespace weft::words
