#include <limits>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

struct Sorting {
  std::int64_t slots, experts_per_token, experts;
  const std::int32_t* expert_of;              // a slot
  std::int32_t *row_of, *slot_of, *token_of;  // of a slot; of a row
  std::int64_t* counts;                       // of an expert
};

// A counting sort: stable, and one pass over the slots for the counts, one for the rows. It is one
// task; even tens of thousands of slots take well under a millisecond.
void sort_slots(const Sorting& s) {
  std::fill_n(s.counts, s.experts, 0);
  for (std::int64_t slot = 0; slot < s.slots; ++slot) {
    const std::int32_t e = s.expert_of[slot];
    CHECK(e >= 0 && e < s.experts, "expert {} of {}", e, s.experts);
    ++s.counts[e];
  }
  std::vector<std::int64_t> next(static_cast<std::size_t>(s.experts));
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < s.experts; ++e) {
    next[static_cast<std::size_t>(e)] = row;
    row += s.counts[e];
  }
  for (std::int64_t slot = 0; slot < s.slots; ++slot) {
    const std::int64_t r = next[static_cast<std::size_t>(s.expert_of[slot])]++;
    s.row_of[slot] = static_cast<std::int32_t>(r);
    s.slot_of[r] = static_cast<std::int32_t>(slot);
    s.token_of[r] = static_cast<std::int32_t>(slot / s.experts_per_token);
  }
}

}  // namespace

void sort_by_expert(Stream& stream,
                    Tensor row,
                    Tensor slot,
                    Tensor token,
                    Tensor counts,
                    Tensor experts) {
  const auto [tokens, k] = matrix_shape("experts", experts);
  const std::int64_t slots = tokens * k;
  CHECK(k >= 1, "experts is {}", experts.shape().print());
  CHECK(slots <= std::numeric_limits<std::int32_t>::max(), "{} rows do not fit int32", slots);
  check_matrix("row", row, tokens, k);
  check_vector("slot", slot, slots);
  check_vector("token", token, slots);
  check_contiguous("row", row);
  check_contiguous("experts", experts);
  const Sorting sorting{.slots = slots,
                        .experts_per_token = k,
                        .experts = vector_length("counts", counts),
                        .expert_of = experts.data<std::int32_t>(stream),
                        .row_of = row.data<std::int32_t>(stream),
                        .slot_of = slot.data<std::int32_t>(stream),
                        .token_of = token.data<std::int32_t>(stream),
                        .counts = counts.data<std::int64_t>(stream)};
  stream.enqueue("sort_by_expert", WorkClass::Memory, [sorting](tensor::Workers&) {
    sort_slots(sorting);
  });
}

}  // namespace weft::kernels
