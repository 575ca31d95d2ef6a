// Checkpoint file of one rank.
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
// Another name if the checkpoint to be replaced uses the plain one: the old shard stays until the
// new manifest exists.
std::string new_shard_name(const std::filesystem::path& folder, int rank);

// Bytes [begin, begin + count) of an entry, at most one block; valid until the next call.
using ReadBlock =
    std::function<std::string_view(std::size_t entry, std::uint64_t begin, std::uint64_t count)>;

// Writes the entries to the rank's file, complete and synced or not at all. Returns the manifest of
// the file.
Manifest write_shard(const std::filesystem::path& folder,
                     int rank,
                     std::span<const StateEntry> entries,
                     const ReadBlock& read);

// Reads the current tensor values in blocks: the host never holds a whole tensor.
ReadBlock read_tensors(tensor::Stream& stream, std::span<const StateEntry> entries);

// Reads the copied values of a snapshot's entries.
ReadBlock read_snapshot(const Snapshot& snapshot);

// safetensors dtype of a tensor's dtype.
FileDtype file_dtype(tensor::DType dtype);

}  // namespace weft::checkpoint
