#include "weft/checkpoint/shard.h"

#include <map>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/crc32c.h"
#include "weft/checkpoint/manifest_words.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/checkpoint/tensors/safetensors.h"
#include "weft/tensor/stream.h"

namespace weft::checkpoint {
namespace {

// Appends an entry; returns the checksums of its blocks.
std::vector<std::uint32_t> append_entry(std::size_t entry,
                                        std::uint64_t bytes,
                                        const ReadBlock& read,
                                        const base::Append& append) {
  std::vector<std::uint32_t> checksums;
  for (std::uint64_t at = 0; at < bytes; at += kBlockBytes) {
    const std::string_view block = read(entry, at, std::min(kBlockBytes, bytes - at));
    checksums.push_back(base::crc32c(block));
    append(block);
  }
  return checksums;
}

}  // namespace

std::string shard_name(int rank) { return base::text("rank_{}.safetensors", rank); }

std::string new_shard_name(const std::filesystem::path& folder, int rank) {
  const std::string name = shard_name(rank);
  const bool is_taken = is_whole(folder) && names_file(read_manifest(folder), name);
  return is_taken ? base::text("rank_{}{}.safetensors", rank, kSecondShard) : name;
}

FileDtype file_dtype(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::F32:
      return FileDtype::F32;
    case tensor::DType::BF16:
      return FileDtype::BF16;
    case tensor::DType::F16:
      return FileDtype::F16;
    case tensor::DType::I16:
      return FileDtype::I16;
    case tensor::DType::F64:
      return FileDtype::F64;
    case tensor::DType::I32:
      return FileDtype::I32;
    case tensor::DType::I64:
      return FileDtype::I64;
    case tensor::DType::F8E4M3:
    case tensor::DType::MXFP8:
    case tensor::DType::NVFP4:
      break;  // no state has these
  }
  UNREACHABLE("state in {}", base::name_of(dtype));
}

ReadBlock read_tensors(tensor::Stream& stream, std::span<const StateEntry> entries) {
  return [&stream, entries, block = std::string()](std::size_t entry,
                                                   std::uint64_t begin,
                                                   std::uint64_t count) mutable {
    block.resize(count);
    const std::byte* from = entries[entry].tensor.raw(stream) + begin;
    stream.download(reinterpret_cast<std::byte*>(block.data()), from, std::ssize(block));
    stream.synchronize();
    return std::string_view(block);
  };
}

ReadBlock read_snapshot(const Snapshot& snapshot) {
  return [&snapshot](std::size_t entry, std::uint64_t begin, std::uint64_t count) {
    const std::span<const std::byte> block = snapshot.values(entry).subspan(begin, count);
    return std::string_view(reinterpret_cast<const char*>(block.data()), block.size());
  };
}

Manifest write_shard(const std::filesystem::path& folder,
                     int rank,
                     std::span<const StateEntry> entries,
                     const ReadBlock& read) {
  Manifest manifest;
  if (entries.empty()) return manifest;
  std::vector<NewTensor> tensors;
  // Number of parts per tensor that this rank keeps in several places.
  std::map<std::string, int> parts;
  for (const StateEntry& entry : entries) {
    const auto dims = entry.tensor.shape().dims();
    const int part = parts[entry.name]++;
    tensors.push_back({.name = part == 0 ? entry.name : base::text("{}#{}", entry.name, part),
                       .dtype = file_dtype(entry.tensor.dtype()),
                       .shape = Shape(dims.begin(), dims.end())});
  }
  std::vector<StoredSlice> slices;
  const std::string name = new_shard_name(folder, rank);
  const std::string header =
      write_safetensors(folder / name, tensors, [&](const NewTensor&, const base::Append& append) {
        const std::size_t index = slices.size();
        const auto bytes = static_cast<std::uint64_t>(entries[index].tensor.bytes());
        slices.push_back(
            {.slice = entries[index].slice, .checksums = append_entry(index, bytes, read, append)});
      });
  base::sync_folder(folder);
  std::uint64_t at = header.size();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    slices[i].at = at;
    at += static_cast<std::uint64_t>(entries[i].tensor.bytes());
    StoredState& state = manifest.states[entries[i].name];
    state.dtype = tensors[i].dtype;
    state.shape = entries[i].slice.global;
    state.slices.push_back(std::move(slices[i]));
  }
  manifest.files.push_back({.name = name,
                            .bytes = at,
                            .header_bytes = header.size(),
                            .header_checksum = base::crc32c(header)});
  return manifest;
}

}  // namespace weft::checkpoint
