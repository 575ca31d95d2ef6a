// What every picture writes alike.
#pragma once

#include <string>
#include <string_view>

namespace weft::trace::svg {

// Text (UTF-8) as XML takes it.
std::string escape(std::string_view raw);

// A coordinate, to a tenth of a pixel, without a useless zero.
std::string px(double value);

}  // namespace weft::trace::svg
