// Reader of checkpoint state under any layout.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/files/file.h"
#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/state.h"
#include "weft/tensor/stream.h"

namespace weft::checkpoint {

// Reads and checks only the blocks that contain requested elements. ConfigError with the damaged
// file and bytes.
class StateReader {
 public:
  // `manifest` must outlive it.
  StateReader(const Manifest& manifest, std::filesystem::path folder);
  ~StateReader();  // waits for enqueued work
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  // Enqueues the reads into the entry's tensor. ConfigError if the checkpoint lacks the tensor or a
  // part of it, or has another shape or dtype.
  void read(tensor::Stream& stream, const StateEntry& entry);

  // Fills `out` with a slice of a tensor from any floating-point dtype. ConfigError if the
  // checkpoint has no such tensor of this global shape.
  void read(const std::string& name, const tensor::Slice& slice, std::span<float> out);

  // Fills `out` with the bytes of a slice of a tensor. ConfigError if the checkpoint has no such
  // tensor of this dtype and global shape.
  void read_bytes(const std::string& name,
                  FileDtype dtype,
                  const tensor::Slice& slice,
                  std::span<std::byte> out);

  // Reads and checks every byte with a checksum; `read` receives the bytes done so far. Returns the
  // first error of each file, including unreadable files.
  std::vector<std::string> verify(const std::function<void(std::uint64_t bytes)>& read);

  // Dtype of a tensor; nullopt: not in the checkpoint.
  std::optional<FileDtype> dtype_of(const std::string& name) const;

 private:
  const StoredState& find(const std::string& name) const;
  void require_like(const std::string& name,
                    const StoredState& state,
                    FileDtype dtype,
                    const tensor::Shape& shape) const;
  // Overlap of a stored slice with a piece.
  struct Part {
    std::int64_t to = 0, from = 0, count = 0;  // elements of the piece and of the stored slice
  };
  void read_piece(const std::string& name,
                  const StoredState& state,
                  const tensor::Slice& piece,
                  std::span<std::byte> out);
  static std::vector<Part> parts(const StoredSlice& stored,
                                 const std::vector<tensor::Run>& wanted,
                                 const tensor::Range& hull);
  void copy(const StoredSlice& stored, FileDtype dtype, std::uint64_t begin, std::span<std::byte>);
  void load_block(const StoredSlice& stored, std::uint64_t block, std::uint64_t size);
  // Reads and checks a block.
  void read_block(const StoredSlice& stored, std::uint64_t block, std::span<std::byte> out);
  const base::InputFile& file(std::size_t index);

  const Manifest& manifest_;
  const std::filesystem::path folder_;
  std::map<std::size_t, base::InputFile> open_;
  const StoredSlice* loaded_ = nullptr;  // slice of the block in block_
  std::uint64_t loaded_block_ = 0;
  std::vector<std::byte> block_;
  // Double buffer: one piece is read while the previous one is uploaded.
  struct Buffer {
    std::vector<std::byte> bytes;
    tensor::Event uploaded;
  };
  std::array<Buffer, 2> buffers_;
  std::size_t turn_ = 0;
};

}  // namespace weft::checkpoint
