// Format constants shared by the writer and the reader of manifests.
#pragma once

#include <string_view>

#include "weft/base/text.h"

namespace weft::checkpoint {

inline constexpr std::string_view kManifestFormat = "weft-checkpoint-1";

// Checksum over all preceding bytes; it is the last member of the object.
inline constexpr std::string_view kChecksumKey = ",\"crc32c\":";

// Name suffix of a shard written while a checkpoint with the plain name is still needed.
inline constexpr std::string_view kSecondShard = ".2";

}  // namespace weft::checkpoint
