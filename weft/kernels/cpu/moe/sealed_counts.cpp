// Counts with an integrity code, so that a damaged message is detected.
#include "weft/base/sealed_count.h"
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

void seal_counts(Stream& stream, Tensor counts, std::int64_t member) {
  const std::int64_t n = counts.dim(0);
  auto* numbers = data<std::int64_t>(stream, counts);
  const Faults faults(stream);
  enqueue(stream, "seal_counts", WorkClass::Memory, [=](Workers&) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (numbers[i] < 0 || numbers[i] > base::kLargestSealable) {
        return faults.raise(FaultCode::CountTooLarge, {numbers[i]});
      }
      numbers[i] = base::seal(numbers[i], member, i);
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
        const std::optional<std::int64_t> count = base::unseal(number, member, i);
        if (!count) {
          return faults.raise(FaultCode::CountsDamaged, {i, member, number});
        }
        number = *count;
      }
    }
  });
}

}  // namespace weft::kernels::cpu
