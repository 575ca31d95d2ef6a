// Texts of strangers (typed, or read from a file) as a terminal may show them. A character that
// steers a terminal, or that changes how others are shown, becomes an escape: C0 and C1 controls,
// characters of direction and other format characters, and bytes that are no UTF-8.
//   ESC -> \x1b   U+009B -> \x9b   U+202E -> \u202e   U+E0001 -> \U000e0001   line feed -> \n
#pragma once

#include <string>
#include <string_view>

namespace weft::base {

enum class Escapes {
  Word,      // a name: on one line
  Lines,     // line feeds and tabs stay
  JsonText,  // a JSON text, which keeps its meaning: escapes as JSON's strings have them
};
std::string visible(std::string_view text, Escapes escapes = Escapes::Word);

// At most so many bytes of the text, without a part of a character at the end.
std::string_view shortened(std::string_view text, std::size_t bytes);

}  // namespace weft::base
