// Whether a file is text.
#pragma once

#include <filesystem>
#include <string_view>

namespace weft::base {

// Whether the bytes are UTF-8 without NUL. A last character that is cut off counts as whole.
bool is_plain_text(std::string_view bytes);

// Whether the first 64 KiB of a file are. SystemError where it cannot be read.
bool begins_as_plain_text(const std::filesystem::path& file);

}  // namespace weft::base
