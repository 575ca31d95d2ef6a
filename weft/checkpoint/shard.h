// One rank's file of a checkpoint.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/state.h"

namespace weft::checkpoint {

std::string shard_name(int rank);  // "rank_3.safetensors"

// Writes entries into the rank's file, whole or not at all and synced, and returns what lies where.
Manifest write_shard(tensor::Stream& stream,
                     const std::filesystem::path& folder,
                     int rank,
                     std::span<const StateEntry> entries);

// The word of safetensors for what a tensor holds.
FileDtype file_dtype(tensor::DType dtype);

}  // namespace weft::checkpoint
