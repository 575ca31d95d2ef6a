// Text helpers of all SVG pictures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::trace::svg {

// Escapes UTF-8 text for XML.
std::string escape(std::string_view raw);

// Style of all pictures: background and text colour follow the viewer's theme.
std::string_view style();

// Lines of at most `letters` letters, broken between words; a longer word is split.
std::vector<std::string> wrapped(std::string_view words, std::size_t letters);

// Coordinate rounded to a tenth of a pixel, without trailing zeros.
std::string px(double value);

}  // namespace weft::trace::svg
