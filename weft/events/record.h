// How records lie in an event file, one after the other: their length (8 bytes), its checksum (4),
// the bytes, and their checksum (4). Little-endian; checksums are CRC-32C, turned and shifted so
// that a checksum of bytes that hold checksums says something.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/file.h"

namespace weft::events {

std::string framed(std::string_view bytes);

// Reads the whole records at the beginning of a file.
class RecordReader {
 public:
  explicit RecordReader(const std::filesystem::path& path) : file_(path) {}

  // Where the next record begins.
  std::uint64_t offset() const { return offset_; }
  // Nothing at the end, and from the first record on that is damaged, cut, or longer than any that
  // Weft writes.
  std::optional<std::string> next();

 private:
  base::InputFile file_;
  std::uint64_t offset_ = 0;
};

}  // namespace weft::events
