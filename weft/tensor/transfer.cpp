#include "weft/tensor/transfer.h"

#include <algorithm>

namespace weft::tensor {

void write_floats(Stream& stream, const Tensor& to, std::span<const float> from) {
  if (to.dtype() == DType::F32) return write<float>(stream, to, from);
  std::vector<BFloat16> rounded(from.size());
  std::ranges::transform(from, rounded.begin(), [](float value) { return BFloat16(value); });
  write<BFloat16>(stream, to, rounded);
}

void read_floats(Stream& stream, std::span<float> to, const Tensor& from) {
  if (from.dtype() == DType::F32) return read<float>(stream, to, from);
  const std::vector<BFloat16> values = read<BFloat16>(stream, from);
  CHECK(to.size() == values.size(), "{} values of {}", to.size(), from.shape().print());
  std::ranges::transform(values, to.begin(), [](BFloat16 value) { return float(value); });
}

std::vector<float> read_floats(Stream& stream, const Tensor& from) {
  std::vector<float> values(static_cast<std::size_t>(from.elements()));
  read_floats(stream, values, from);
  return values;
}

}  // namespace weft::tensor
