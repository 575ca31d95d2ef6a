// Parts of the page, which the build embeds from the files in page/.
#pragma once

#include <string_view>

namespace weft::report {

extern const std::string_view kPageHtml;  // with placeholders for the others
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace weft::report
