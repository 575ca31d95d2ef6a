// Copies between host and device memory, enqueued on a stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/check.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/tensor.h"

namespace weft::tensor {

// Enqueues a copy of host values to a contiguous tensor with equally many elements. The values must
// stay in place until the stream has passed the copy.
template <typename T>
void upload(Stream& stream, const Tensor& to, std::span<const T> from) {
  CHECK(std::ssize(from) == to.elements(), "{} values for {}", from.size(), to.shape().print());
  CHECK(to.contiguous(), "an upload to a strided tensor {}", to.shape().print());
  auto* at = reinterpret_cast<std::byte*>(to.data<T>(stream));
  stream.upload(at, reinterpret_cast<const std::byte*>(from.data()), to.bytes());
}

// Deleted for temporaries, which would be gone before the copy.
template <typename T>
void upload(Stream& stream, const Tensor& to, std::vector<T>&& from) = delete;

// Enqueues a copy to the host; the values are valid after the host has waited for the stream.
template <typename T>
void download(Stream& stream, std::span<T> to, const Tensor& from) {
  CHECK(std::ssize(to) == from.elements(), "{} values of {}", to.size(), from.shape().print());
  CHECK(from.contiguous(), "a download of a strided tensor {}", from.shape().print());
  const auto* at = reinterpret_cast<const std::byte*>(from.data<T>(stream));
  stream.download(reinterpret_cast<std::byte*>(to.data()), at, from.bytes());
}

// Blocking variants.
template <typename T>
void write(Stream& stream, const Tensor& to, std::span<const T> from) {
  upload(stream, to, from);
  stream.synchronize();
}
template <typename T>
void read(Stream& stream, std::span<T> to, const Tensor& from) {
  download(stream, to, from);
  stream.synchronize();
}
template <typename T>
std::vector<T> read(Stream& stream, const Tensor& from) {
  std::vector<T> values(static_cast<std::size_t>(from.elements()));
  read<T>(stream, values, from);
  return values;
}

// Blocking, with conversion for bf16 tensors: writes round to nearest even, reads are exact.
void write_floats(Stream& stream, const Tensor& to, std::span<const float> from);
void read_floats(Stream& stream, std::span<float> to, const Tensor& from);
std::vector<float> read_floats(Stream& stream, const Tensor& from);

}  // namespace weft::tensor
