// Untrusted text (typed, or read from a file) made safe for a terminal. Characters that control a
// terminal or change the display of others become escapes: C0 and C1 controls, direction and other
// format characters, and bytes that are no UTF-8.
//   ESC -> \x1b   U+009B -> \x9b   U+202E -> \u202e   U+E0001 -> \U000e0001   line feed -> \n
#pragma once

#include <string>
#include <string_view>

namespace weft::base {

enum class Escapes {
  Word,      // a name, on one line
  Lines,     // line feeds and tabs stay
  JsonText,  // JSON text: escapes in JSON's own form, so that its meaning stays
};
std::string visible(std::string_view text, Escapes escapes = Escapes::Word);

// First bytes of the text, at most `bytes`, ending with a whole character.
std::string_view shortened(std::string_view text, std::size_t bytes);

}  // namespace weft::base
