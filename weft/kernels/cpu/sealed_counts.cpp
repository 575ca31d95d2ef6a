// Counts that travel with a code, so that a damaged message is known as one.
#include "weft/base/error.h"
#include "weft/base/sealed_count.h"
#include "weft/base/text.h"
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

void seal_counts(Stream& stream, Tensor counts, std::int64_t member) {
  const std::int64_t n = vector_length("counts", counts);
  auto* numbers = counts.data<std::int64_t>(stream);
  stream.enqueue("seal_counts", WorkClass::Memory, [=](tensor::Workers&) {
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK(numbers[i] >= 0 && numbers[i] <= base::kLargestSealable,
            "count {} has no room for its code",
            numbers[i]);
      numbers[i] = base::seal(numbers[i], member, i);
    }
  });
}

void open_counts(Stream& stream, Tensor counts) {
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  stream.enqueue("open_counts", WorkClass::Memory, [=](tensor::Workers&) {
    for (std::int64_t member = 0; member < table.rows; ++member) {
      for (std::int64_t i = 0; i < table.columns; ++i) {
        std::int64_t& number = table.row(member)[i];
        const std::optional<std::int64_t> count = base::unseal(number, member, i);
        if (!count) {
          throw base::SystemError(
              base::text("number {} of the counts of member {} arrived damaged ({:#x}): the "
                         "transport between the ranks loses or changes bytes",
                         i,
                         member,
                         static_cast<std::uint64_t>(number)));
        }
        number = *count;
      }
    }
  });
}

}  // namespace weft::kernels
