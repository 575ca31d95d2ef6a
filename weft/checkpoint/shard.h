// One rank's file of a checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/snapshot.h"
#include "weft/checkpoint/state.h"

namespace weft::checkpoint {

std::string shard_name(int rank);  // "rank_3.safetensors"
// Where a checkpoint that is to be replaced has that name, another: it stays whole until the
// manifest of the new one is there.
std::string new_shard_name(const std::filesystem::path& folder, int rank);

// Bytes [begin, begin + count) of an entry, at most a block of them; they stay until the next call.
using ReadBlock =
    std::function<std::string_view(std::size_t entry, std::uint64_t begin, std::uint64_t count)>;

// Writes entries into the rank's file, whole or not at all and synced, and returns what lies where.
Manifest write_shard(const std::filesystem::path& folder,
                     int rank,
                     std::span<const StateEntry> entries,
                     const ReadBlock& read);

// The bytes that the entries' tensors hold now: the host never has a whole tensor.
ReadBlock read_tensors(tensor::Stream& stream, std::span<const StateEntry> entries);

// The bytes as they were when they were copied; for the snapshot's own entries.
ReadBlock read_snapshot(const Snapshot& snapshot);

// The word of safetensors for what a tensor holds.
FileDtype file_dtype(tensor::DType dtype);

}  // namespace weft::checkpoint
