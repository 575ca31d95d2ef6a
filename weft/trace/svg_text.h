// What every picture writes alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::trace::svg {

// Text (UTF-8) as XML takes it.
std::string escape(std::string_view raw);

// The style of every picture: paper and ink follow the theme of who looks at it.
std::string_view style();

// Lines of at most as many letters, broken between words; a longer word is broken itself.
std::vector<std::string> wrapped(std::string_view words, std::size_t letters);

// A coordinate, to a tenth of a pixel, without a useless zero.
std::string px(double value);

}  // namespace weft::trace::svg
