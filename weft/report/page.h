// The parts of the page, from the files of the folder page/: the build puts them into the program.
#pragma once

#include <string_view>

namespace weft::report {

extern const std::string_view kPageHtml;  // with the places of the others
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace weft::report
