// State from a checkpoint, whatever layout it was written under.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/file.h"
#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/state.h"
#include "weft/tensor/stream.h"

namespace weft::checkpoint {

// Reads only the blocks that hold something of what is asked for, and checks each. ConfigError
// names the file that is damaged and the bytes.
class StateReader {
 public:
  // `manifest` outlives it.
  StateReader(const Manifest& manifest, std::filesystem::path folder);
  ~StateReader();  // waits for what it has enqueued
  StateReader(const StateReader&) = delete;
  StateReader& operator=(const StateReader&) = delete;

  // Enqueues what fills the entry's tensor. ConfigError where the checkpoint has no such tensor, or
  // not of this shape and dtype, or not all of it.
  void read(tensor::Stream& stream, const StateEntry& entry);

  // Fills `out` with the elements of a slice of a tensor, whatever floating point it is stored in.
  // ConfigError where the checkpoint has no such tensor of the slice's global shape.
  void read(const std::string& name, const tensor::Slice& slice, std::span<float> out);

  // Fills `out` with the bytes of a slice of a tensor. ConfigError where the checkpoint has no such
  // tensor of this dtype and the slice's global shape.
  void read_bytes(const std::string& name,
                  FileDtype dtype,
                  const tensor::Slice& slice,
                  std::span<std::byte> out);

  // Reads every byte that has a checksum and checks it, `read` being told how many so far; what is
  // wrong with each file, the first of it. SystemError where a file cannot be read is one of them.
  std::vector<std::string> verify(const std::function<void(std::uint64_t bytes)>& read);

  // Of the tensor, where the checkpoint has one.
  std::optional<FileDtype> dtype_of(const std::string& name) const;

 private:
  const StoredState& find(const std::string& name) const;
  void require_like(const std::string& name,
                    const StoredState& state,
                    FileDtype dtype,
                    const tensor::Shape& shape) const;
  // Elements that a stored slice has of a piece.
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
  // Reads it and checks it.
  void read_block(const StoredSlice& stored, std::uint64_t block, std::span<std::byte> out);
  const base::InputFile& file(std::size_t index);

  const Manifest& manifest_;
  const std::filesystem::path folder_;
  std::map<std::size_t, base::InputFile> open_;
  const StoredSlice* loaded_ = nullptr;  // whose block is in block_
  std::uint64_t loaded_block_ = 0;
  std::vector<std::byte> block_;
  // One piece of an entry is read while the one before is on its way to the device.
  struct Buffer {
    std::vector<std::byte> bytes;
    tensor::Event uploaded;
  };
  std::array<Buffer, 2> buffers_;
  std::size_t turn_ = 0;
};

}  // namespace weft::checkpoint
