// Tests whether a file is text.
#pragma once

#include <filesystem>
#include <string_view>

namespace weft::base {

// True if the bytes are UTF-8 without NUL. A cut last character counts as whole.
bool is_plain_text(std::string_view bytes);

// True if the first 64 KiB of a file are plain text. Throws SystemError if the file cannot be read.
bool begins_as_plain_text(const std::filesystem::path& file);

}  // namespace weft::base
