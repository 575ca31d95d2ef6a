// What a word of the command line looks like, before its meaning is known.
#pragma once

#include <string_view>

namespace weft::words {

// Whether a word sets or gives back a key that exists, so that it is not the value of a flag.
bool is_setting(std::string_view word);

// Whether a word is written as an override is, of whatever key: `a.b=c`, `+a.b=c`, `~a.b`.
bool is_override(std::string_view word);

// Whether a word is a value whatever stands before it: a number, a switch, a list.
bool is_plain_value(std::string_view word);

}  // namespace weft::words
