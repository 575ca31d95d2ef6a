#include "weft/checkpoint/shard.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/base/crc32c.h"
#include "weft/checkpoint/safetensors.h"

namespace weft::checkpoint {
namespace {

// Block by block: the host never has a whole tensor. Returns the checksums.
std::vector<std::uint32_t> append_tensor(tensor::Stream& stream,
                                         const tensor::Tensor& tensor,
                                         std::string& block,
                                         const base::Append& append) {
  std::vector<std::uint32_t> checksums;
  const std::byte* from = tensor.raw(stream);
  const auto bytes = static_cast<std::uint64_t>(tensor.bytes());
  for (std::uint64_t at = 0; at < bytes; at += kBlockBytes) {
    block.resize(std::min(kBlockBytes, bytes - at));
    stream.download(reinterpret_cast<std::byte*>(block.data()), from + at, std::ssize(block));
    stream.synchronize();
    checksums.push_back(base::crc32c(block));
    append(block);
  }
  return checksums;
}

}  // namespace

std::string shard_name(int rank) { return base::text("rank_{}.safetensors", rank); }

FileDtype file_dtype(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::F32:
      return FileDtype::F32;
    case tensor::DType::BF16:
      return FileDtype::BF16;
    case tensor::DType::F64:
      return FileDtype::F64;
    case tensor::DType::I32:
      return FileDtype::I32;
    case tensor::DType::I64:
      return FileDtype::I64;
  }
  UNREACHABLE("a dtype");
}

Manifest write_shard(tensor::Stream& stream,
                     const std::filesystem::path& folder,
                     int rank,
                     std::span<const StateEntry> entries) {
  Manifest manifest;
  if (entries.empty()) return manifest;
  std::vector<NewTensor> tensors;
  for (const StateEntry& entry : entries) {
    const auto dims = entry.tensor.shape().dims();
    tensors.push_back({.name = entry.name,
                       .dtype = file_dtype(entry.tensor.dtype()),
                       .shape = Shape(dims.begin(), dims.end())});
  }
  std::vector<StoredSlice> slices;
  std::string block;
  const std::string name = shard_name(rank);
  const std::string header =
      write_safetensors(folder / name, tensors, [&](const NewTensor&, const base::Append& append) {
        const StateEntry& entry = entries[slices.size()];
        slices.push_back({.slice = entry.slice,
                          .checksums = append_tensor(stream, entry.tensor, block, append)});
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
