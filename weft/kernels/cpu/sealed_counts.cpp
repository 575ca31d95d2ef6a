// Counts that travel with a code, so that a damaged message is known as one.
#include "weft/base/random.h"
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

// A count takes the lower 40 bits, the code the upper 24.
constexpr int kCountBits = 40;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

// Of the count, its place and who counted: neither another number nor one from another place fits.
std::uint64_t sealed(std::uint64_t count, std::int64_t member, std::int64_t place) {
  const auto code = base::philox(count, static_cast<std::uint64_t>(place), member)[0];
  return std::uint64_t{code} << kCountBits | count;
}

}  // namespace

void seal_counts(Stream& stream, Tensor counts, std::int64_t member) {
  const std::int64_t n = counts.dim(0);
  auto* numbers = data<std::int64_t>(stream, counts);
  const Faults faults(stream);
  enqueue(stream, "seal_counts", WorkClass::Memory, [=](Workers&) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto count = static_cast<std::uint64_t>(numbers[i]);
      if (count > kCountMask) return faults.raise(FaultCode::CountTooLarge, {numbers[i]});
      numbers[i] = static_cast<std::int64_t>(sealed(count, member, i));
    }
  });
}

void open_counts(Stream& stream, Tensor counts) {
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  const Faults faults(stream);
  enqueue(stream, "open_counts", WorkClass::Memory, [=](Workers&) {
    for (std::int64_t member = 0; member < table.rows; ++member) {
      for (std::int64_t i = 0; i < table.columns; ++i) {
        std::int64_t& number = table.row(member)[i];
        const auto message = static_cast<std::uint64_t>(number);
        const std::uint64_t count = message & kCountMask;
        if (message != sealed(count, member, i)) {
          return faults.raise(FaultCode::CountsDamaged, {i, member, number});
        }
        number = static_cast<std::int64_t>(count);
      }
    }
  });
}

}  // namespace weft::kernels::cpu
