// Record format of an event file, little-endian: length (8 bytes), its checksum (4), payload, its
// checksum (4). Checksums are masked CRC-32C: rotated and shifted, so that a checksum over
// checksums stays meaningful.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/files/file.h"

namespace weft::events {

std::string framed(std::string_view bytes);

// Reads the intact records from the beginning of a file.
class RecordReader {
 public:
  explicit RecordReader(const std::filesystem::path& path) : file_(path) {}

  // Offset of the next record.
  std::uint64_t offset() const { return offset_; }
  // nullopt: end of file, or the first record that is damaged, cut, or longer than any Weft record.
  std::optional<std::string> next();

 private:
  base::InputFile file_;
  std::uint64_t offset_ = 0;
};

}  // namespace weft::events
