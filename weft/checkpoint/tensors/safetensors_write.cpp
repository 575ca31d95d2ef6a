#include <cstring>
#include <set>

#include "weft/base/check.h"
#include "weft/base/json.h"
#include "weft/checkpoint/tensors/safetensors.h"

namespace weft::checkpoint {
namespace {

using base::text;

std::uint64_t bytes_of(const NewTensor& tensor) {
  std::uint64_t bytes = element_bytes(tensor.dtype);
  for (const std::int64_t dim : tensor.shape) {
    CHECK(dim >= 0, "tensor '{}' has shape {}", tensor.name, tensor.shape);
    CHECK(!__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes),
          "tensor '{}' of shape {} is too large",
          tensor.name,
          tensor.shape);
  }
  return bytes;
}

// Header length and header, padded with blanks to align the data to 8 bytes.
std::string header_of(std::span<const NewTensor> tensors) {
  base::Json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::string lines = header.dump();
  lines.pop_back();
  std::set<std::string_view> names;
  std::uint64_t at = 0;
  for (const NewTensor& tensor : tensors) {
    CHECK(names.insert(tensor.name).second, "tensor '{}' written twice", tensor.name);
    const std::uint64_t end = at + bytes_of(tensor);
    base::Json entry;
    entry["dtype"] = word(tensor.dtype);
    entry["shape"] = tensor.shape;
    entry["data_offsets"] = {at, end};
    lines += text(",{}:{}", base::Json(tensor.name).dump(), entry.dump());
    at = end;
  }
  lines += '}';
  lines.resize((lines.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = lines.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  return prefix + lines;
}

}  // namespace

std::string write_safetensors(
    const std::filesystem::path& path,
    std::span<const NewTensor> tensors,
    const std::function<void(const NewTensor& tensor, const base::Append& append)>& write) {
  std::string header = header_of(tensors);
  base::write_whole(path, [&](const base::Append& append) {
    append(header);
    for (const NewTensor& tensor : tensors) {
      std::uint64_t written = 0;
      write(tensor, [&](std::string_view bytes) {
        written += bytes.size();
        append(bytes);
      });
      CHECK(written == bytes_of(tensor),
            "tensor '{}' got {} bytes, {} expected",
            tensor.name,
            written,
            bytes_of(tensor));
    }
  });
  return header;
}

}  // namespace weft::checkpoint
