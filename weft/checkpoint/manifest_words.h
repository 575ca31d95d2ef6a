// What the writer and the reader of manifests agree on.
#pragma once

#include <string_view>

#include "weft/base/text.h"

namespace weft::checkpoint {

inline constexpr std::string_view kManifestFormat = "weft-checkpoint-1";

// The checksum is the last member of the object, of all bytes before it.
inline constexpr std::string_view kChecksumKey = ",\"crc32c\":";

// In the name of a shard that is written while a checkpoint with the plain name is still needed.
inline constexpr std::string_view kSecondShard = ".2";

}  // namespace weft::checkpoint
