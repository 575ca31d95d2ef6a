// Shape of a command-line word, before its meaning is known.
#pragma once

#include <string_view>

namespace weft::words {

// True if the word sets or resets an existing key, so that it is not a flag's value.
bool is_setting(std::string_view word);

// True for the syntax of an override, of any key: `a.b=c`, `+a.b=c`, `~a.b`.
bool is_override(std::string_view word);

// True if the word is a value in any position: a number, a switch, a list.
bool is_plain_value(std::string_view word);

}  // namespace weft::words
