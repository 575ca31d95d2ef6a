// What a user has stays: nothing that is there is replaced without the word for it, --overwrite.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace weft::base {

enum class Overwrite { No, Yes };

// ConfigError where a file with content is at `path`, unless it may be replaced: with
// Overwrite::Yes, or where `mark` stands in its first 4 KiB, so that the same command wrote it.
// Devices, pipes and the standard streams are written into and hold nothing to lose.
void require_free(const std::filesystem::path& path,
                  Overwrite overwrite,
                  std::string_view mark = {});

// The same before long work, with require_writable(): what would keep a command from its result.
void require_result(const std::filesystem::path& path,
                    Overwrite overwrite,
                    std::string_view mark = {});

}  // namespace weft::base
