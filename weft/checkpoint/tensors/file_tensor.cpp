#include "weft/checkpoint/tensors/file_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/base/check.h"

namespace weft::checkpoint {
namespace {

using base::text;

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

struct DtypeRow {
  std::string_view word;
  std::size_t bytes;
};

constexpr std::array<DtypeRow, 15> kDtypes{{{"BOOL", 1},
                                            {"U8", 1},
                                            {"I8", 1},
                                            {"F8_E5M2", 1},
                                            {"F8_E4M3", 1},
                                            {"U16", 2},
                                            {"I16", 2},
                                            {"F16", 2},
                                            {"BF16", 2},
                                            {"U32", 4},
                                            {"I32", 4},
                                            {"F32", 4},
                                            {"U64", 8},
                                            {"I64", 8},
                                            {"F64", 8}}};

// Two-byte floating-point types, so that one loop loads either.
struct Bf16 {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

struct Fp16 {
  std::uint16_t bits;
  operator float() const {
    const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
    const int exponent = (bits >> 10) & 31;
    const auto fraction = static_cast<float>(bits & 1023u);
    if (exponent == 31) {
      return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                           : std::numeric_limits<float>::quiet_NaN();
    }
    return exponent == 0 ? sign * std::ldexp(fraction, -24)
                         : sign * std::ldexp(1024.0f + fraction, exponent - 25);
  }
};

template <typename Stored>
Stored load(const std::byte* bytes, std::size_t i) {
  Stored value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  return value;
}

void check_range(const TensorView& tensor, std::int64_t begin, std::size_t count) {
  const std::int64_t elements = tensor.elements();
  CHECK(begin >= 0 && begin <= elements && count <= static_cast<std::uint64_t>(elements - begin),
        "{}: elements [{}, +{}) of {}",
        tensor.where,
        begin,
        count,
        elements);
}

// Calls take(i, value) for each of `count` elements from `begin` on; reads in pieces.
template <typename Stored, typename Take>
void each(const TensorView& tensor, std::int64_t begin, std::size_t count, const Take& take) {
  constexpr std::size_t kPiece = 8192;
  std::array<std::byte, kPiece * sizeof(Stored)> bytes;
  for (std::size_t done = 0; done < count; done += kPiece) {
    const std::size_t now = std::min(kPiece, count - done);
    tensor.read((static_cast<std::uint64_t>(begin) + done) * sizeof(Stored),
                std::span(bytes).first(now * sizeof(Stored)));
    for (std::size_t i = 0; i < now; ++i) take(done + i, load<Stored>(bytes.data(), i));
  }
}

template <typename Stored, typename Out>
void convert(const TensorView& tensor, std::int64_t begin, std::span<Out> out) {
  each<Stored>(tensor, begin, out.size(), [&](std::size_t i, Stored value) {
    out[i] = static_cast<Out>(value);
  });
}

[[noreturn]] void throw_dtype(const TensorView& tensor, std::string_view readable) {
  throw base::ConfigError(
      text("{} has dtype {}; {} expected", tensor.where, word(tensor.dtype), readable));
}

template <typename Out>
void read_floating(const TensorView& tensor, std::int64_t begin, std::span<Out> out) {
  if (!is_floating(tensor.dtype)) throw_dtype(tensor, "F32, F64, BF16 or F16");
  check_range(tensor, begin, out.size());
  if (tensor.dtype == FileDtype::F32) return convert<float>(tensor, begin, out);
  if (tensor.dtype == FileDtype::F64) return convert<double>(tensor, begin, out);
  if (tensor.dtype == FileDtype::BF16) return convert<Bf16>(tensor, begin, out);
  convert<Fp16>(tensor, begin, out);
}

}  // namespace

std::string_view word(FileDtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].word; }

std::size_t element_bytes(FileDtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)].bytes;
}

std::optional<FileDtype> dtype_of(std::string_view wanted) {
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].word == wanted) return static_cast<FileDtype>(i);
  }
  return std::nullopt;
}

ReadBytes bytes_of(std::span<const std::byte> memory) {
  return [memory](std::uint64_t begin, std::span<std::byte> out) {
    CHECK(begin <= memory.size() && out.size() <= memory.size() - begin,
          "bytes [{}, +{}) of {}",
          begin,
          out.size(),
          memory.size());
    if (!out.empty()) std::memcpy(out.data(), memory.data() + begin, out.size());
  };
}

std::int64_t TensorView::elements() const {
  return static_cast<std::int64_t>(bytes / element_bytes(dtype));
}

bool is_floating(FileDtype dtype) {
  return dtype == FileDtype::F32 || dtype == FileDtype::F64 || dtype == FileDtype::BF16 ||
         dtype == FileDtype::F16;
}

void read_elements(const TensorView& tensor, std::int64_t begin, std::span<float> out) {
  read_floating(tensor, begin, out);
}

void read_elements(const TensorView& tensor, std::int64_t begin, std::span<double> out) {
  read_floating(tensor, begin, out);
}

void read_elements(const TensorView& tensor, std::int64_t begin, std::span<std::int32_t> out) {
  if (tensor.dtype != FileDtype::I32 && tensor.dtype != FileDtype::I64) {
    throw_dtype(tensor, "I32 or I64");
  }
  check_range(tensor, begin, out.size());
  if (tensor.dtype == FileDtype::I32) return convert<std::int32_t>(tensor, begin, out);
  each<std::int64_t>(tensor, begin, out.size(), [&](std::size_t i, std::int64_t value) {
    if (value < INT32_MIN || value > INT32_MAX) {
      throw base::ConfigError(text("{}: element {} is {}, more than 32 bits",
                                   tensor.where,
                                   begin + static_cast<std::int64_t>(i),
                                   value));
    }
    out[i] = static_cast<std::int32_t>(value);
  });
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

std::string_view stored(std::span<const float> values,
                        FileDtype dtype,
                        std::vector<std::uint16_t>& narrow) {
  const auto bytes = [](const auto& numbers) {
    return std::string_view(reinterpret_cast<const char*>(numbers.data()),
                            numbers.size() * sizeof numbers[0]);
  };
  CHECK(dtype == FileDtype::F32 || dtype == FileDtype::BF16, "weights as {}", word(dtype));
  if (dtype == FileDtype::F32) return bytes(values);
  narrow.resize(values.size());
  std::ranges::transform(values, narrow.begin(), to_bf16);
  return bytes(narrow);
}

}  // namespace weft::checkpoint
