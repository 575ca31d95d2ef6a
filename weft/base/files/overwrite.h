// Protection of existing files: they are replaced only with --overwrite.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace weft::base {

enum class Overwrite { No, Yes };

// Throws ConfigError if `path` is a folder, lies below a file, or names a non-empty file that may
// not be replaced. It may be replaced with Overwrite::Yes, or if its first 4 KiB contain `mark`, so
// that the same command wrote it. Devices, pipes and standard streams hold no content to lose.
void require_free(const std::filesystem::path& path,
                  Overwrite overwrite,
                  std::string_view mark = {});

// Combines require_free() and require_writable() before long work.
void require_result(const std::filesystem::path& path,
                    Overwrite overwrite,
                    std::string_view mark = {});

}  // namespace weft::base
