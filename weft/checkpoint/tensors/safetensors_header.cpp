#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/tensors/safetensors.h"
#include "weft/checkpoint/tensors/strict_json.h"

namespace weft::checkpoint {
namespace {

using base::text;

constexpr std::size_t kPrefixBytes = 8;
constexpr std::size_t kMostDims = 8;

[[noreturn]] void reject(const std::string& file, const std::string& what) {
  throw base::ConfigError(text("'{}' is not a readable safetensors file: {}", file, what));
}

[[noreturn]] void reject(const std::string& file,
                         const std::string& tensor,
                         const std::string& what) {
  reject(file, text("tensor {}: {}", shown(tensor), what));
}

std::string header_text(const ReadBytes& read, std::uint64_t file_bytes, const std::string& name) {
  if (file_bytes < kPrefixBytes) {
    reject(name,
           text("it has {} bytes; {} of header length expected: it is truncated",
                file_bytes,
                kPrefixBytes));
  }
  std::uint64_t length = 0;
  read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > file_bytes - kPrefixBytes) {
    reject(
        name,
        text("its header claims {} bytes, the file has {}: it is truncated", length, file_bytes));
  }
  if (length > kLargestJson) {
    reject(name, text("its header claims {} bytes; at most {} are read", length, kLargestJson));
  }
  std::string header(length, '\0');
  read(kPrefixBytes, std::as_writable_bytes(std::span(header)));
  return header;
}

// Integer of at most `limit`.
std::uint64_t bounded(const StrictJson& value,
                      std::uint64_t limit,
                      const std::string& file,
                      const std::string& tensor,
                      std::string_view what) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > limit) {
    reject(file,
           tensor,
           text("{} {}; a whole number of at most {} expected", what, shown(value), limit));
  }
  return value.get<std::uint64_t>();
}

std::uint64_t data_offset(const StrictJson& value,
                          std::uint64_t data_bytes,
                          const std::string& file,
                          const std::string& tensor) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > data_bytes) {
    reject(file,
           tensor,
           text("data offset {}, the file has at most {} bytes of data: it is truncated",
                shown(value),
                data_bytes));
  }
  return bounded(value, data_bytes, file, tensor, "data offset");
}

const StrictJson& field(const StrictJson& entry,
                        const char* key,
                        const std::string& file,
                        const std::string& tensor) {
  const auto found = entry.find(key);
  if (found == entry.end()) reject(file, tensor, text("{} is missing", key));
  return *found;
}

FileDtype parse_dtype(const StrictJson& entry, const std::string& file, const std::string& tensor) {
  const StrictJson& value = field(entry, "dtype", file, tensor);
  const auto dtype =
      value.is_string() ? dtype_of(value.get_ref<const std::string&>()) : std::nullopt;
  if (!dtype) reject(file, tensor, text("dtype {} is not known", shown(value)));
  return *dtype;
}

Shape parse_shape(const StrictJson& entry, const std::string& file, const std::string& tensor) {
  const StrictJson& value = field(entry, "shape", file, tensor);
  if (!value.is_array() || value.size() > kMostDims) {
    reject(file,
           tensor,
           text("shape {}; a list of at most {} dims expected", shown(value), kMostDims));
  }
  Shape shape;
  for (const StrictJson& dim : value) {
    shape.push_back(static_cast<std::int64_t>(bounded(dim, INT64_MAX, file, tensor, "dim")));
  }
  return shape;
}

// Bytes of a shape, at most `limit`, so that the product cannot overflow.
std::uint64_t shape_bytes(const Shape& shape,
                          FileDtype dtype,
                          std::uint64_t limit,
                          const std::string& file,
                          const std::string& tensor) {
  std::uint64_t bytes = element_bytes(dtype);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t dim : shape) {
    if (bytes > limit / static_cast<std::uint64_t>(dim)) {
      reject(file, tensor, text("shape {} is larger than the file's {} bytes", shape, limit));
    }
    bytes *= static_cast<std::uint64_t>(dim);
  }
  return bytes;
}

StoredTensor parse_entry(const StrictJson& entry,
                         std::size_t data_begin,
                         std::size_t data_bytes,
                         const std::string& file,
                         const std::string& tensor) {
  if (!entry.is_object()) reject(file, tensor, text("an object expected, found {}", shown(entry)));
  for (const auto& [key, value] : entry.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      reject(file, tensor, text("unknown key {}", shown(key)));
    }
  }
  const FileDtype dtype = parse_dtype(entry, file, tensor);
  Shape shape = parse_shape(entry, file, tensor);
  const StrictJson& offsets = field(entry, "data_offsets", file, tensor);
  if (!offsets.is_array() || offsets.size() != 2) {
    reject(file, tensor, text("data_offsets {}; [begin, end] expected", shown(offsets)));
  }
  const std::uint64_t begin = data_offset(offsets[0], data_bytes, file, tensor);
  const std::uint64_t end = data_offset(offsets[1], data_bytes, file, tensor);
  const std::uint64_t size = shape_bytes(shape, dtype, data_bytes, file, tensor);
  if (end < begin || end - begin != size) {
    reject(file,
           tensor,
           text("{} of shape {} takes {} bytes; data_offsets [{}, {}] give another size",
                word(dtype),
                shape,
                size,
                begin,
                end));
  }
  return {dtype, std::move(shape), data_begin + begin, data_begin + end};
}

void check_metadata(const StrictJson& metadata, const std::string& file) {
  if (!metadata.is_object()) reject(file, "__metadata__ is not an object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) reject(file, text("__metadata__ key {} is not text", shown(key)));
  }
}

void check_layout(const StoredTensors& tensors,
                  std::size_t data_begin,
                  std::size_t data_end,
                  const std::string& file) {
  std::vector<const StoredTensors::value_type*> by_place;
  for (const auto& entry : tensors) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::size_t at = data_begin;
  for (const auto* entry : by_place) {
    if (entry->second.begin != at) {
      reject(file,
             entry->first,
             text("begins at data byte {}; {} expected: tensors lie back to back",
                  entry->second.begin - data_begin,
                  at - data_begin));
    }
    at = entry->second.end;
  }
  if (at != data_end) {
    reject(file,
           text("its tensors take {} bytes, the file has {} of data: it is cut short or damaged",
                at - data_begin,
                data_end - data_begin));
  }
}

}  // namespace

StoredTensors parse_header(const ReadBytes& read,
                           std::uint64_t file_bytes,
                           const std::string& name) {
  const std::string header = header_text(read, file_bytes, name);
  const StrictJson parsed = parse_object(header, name);
  const std::size_t data_begin = kPrefixBytes + header.size();
  StoredTensors tensors;
  for (const auto& [tensor, entry] : parsed.items()) {
    if (tensor == "__metadata__") {
      check_metadata(entry, name);
      continue;
    }
    tensors.emplace(tensor, parse_entry(entry, data_begin, file_bytes - data_begin, name, tensor));
  }
  check_layout(tensors, data_begin, file_bytes, name);
  return tensors;
}

}  // namespace weft::checkpoint
