// Files: bounded reads, read-only mappings, and writes that are either whole or not there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace weft::base {

// The whole file as text; SystemError when missing or larger than `limit_bytes`.
std::string read_text(const std::filesystem::path& path, std::size_t limit_bytes = 64u << 20);

// Writes a temporary beside `path`, then renames: readers see the old file or the new one, never a
// part.
void write_whole(const std::filesystem::path& path, std::string_view bytes);

// The same for content too big to hold: `write` gets a function that appends bytes.
using Append = std::function<void(std::string_view bytes)>;
void write_whole(const std::filesystem::path& path,
                 const std::function<void(const Append&)>& write);

// A file mapped read-only. An empty file maps to an empty span.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::base
