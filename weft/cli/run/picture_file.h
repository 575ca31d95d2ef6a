// Pictures that a command writes and recognises.
#pragma once

#include <filesystem>
#include <string>

#include "weft/base/files/overwrite.h"

namespace weft::cli {

// Throws ConfigError if `file` has content that `command` ("schedule") did not draw and that may
// not be replaced. Throws SystemError if it cannot be written.
void require_picture(const std::filesystem::path& file,
                     base::Overwrite overwrite,
                     const std::string& command);

// The picture names the command that drew it.
void write_picture(const std::filesystem::path& file,
                   const std::string& svg,
                   const std::string& command);

}  // namespace weft::cli
