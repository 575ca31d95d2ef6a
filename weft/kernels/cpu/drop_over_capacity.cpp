#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

struct Dropping {
  std::int64_t slots, experts, capacity;
  Keep keep;
  const float* p;
  const std::int32_t* expert_of;
  float* kept_p;
  std::int32_t* kept_expert_of;
  std::int64_t* dropped;
};

// The slots of each expert, in order of tokens; then those beyond its capacity go. It is one task,
// as sort_by_expert is.
void drop(const Dropping& d) {
  std::copy_n(d.p, d.slots, d.kept_p);
  std::copy_n(d.expert_of, d.slots, d.kept_expert_of);
  std::vector<std::vector<std::int64_t>> slots_of(static_cast<std::size_t>(d.experts));
  for (std::int64_t slot = 0; slot < d.slots; ++slot) {
    const std::int32_t e = d.expert_of[slot];
    CHECK(e >= 0 && e < d.experts, "expert {} of {}", e, d.experts);
    slots_of[static_cast<std::size_t>(e)].push_back(slot);
  }
  // NaN comes first: any place does, but there must be one order.
  const auto worth = [&](std::int64_t slot) {
    return std::isnan(d.p[slot]) ? std::numeric_limits<float>::infinity() : d.p[slot];
  };
  const auto more_probable = [&](std::int64_t a, std::int64_t b) {
    return worth(a) != worth(b) ? worth(a) > worth(b) : a < b;
  };
  for (std::vector<std::int64_t>& slots : slots_of) {
    if (std::ssize(slots) <= d.capacity) continue;
    const auto last = slots.begin() + d.capacity;
    if (d.keep == Keep::MostProbable) {
      std::nth_element(slots.begin(), last, slots.end(), more_probable);
    }
    for (auto slot = last; slot != slots.end(); ++slot) {
      d.kept_p[*slot] = 0;
      d.kept_expert_of[*slot] = -1;
    }
    *d.dropped += slots.end() - last;
  }
}

void check_slots(std::string_view name, const Tensor& x, std::int64_t tokens, std::int64_t k) {
  check_matrix(name, x, tokens, k);
  check_contiguous(name, x);
}

}  // namespace

void drop_over_capacity_forward(Stream& stream,
                                Tensor kept_p,
                                Tensor kept_experts,
                                Tensor dropped,
                                Tensor p,
                                Tensor experts,
                                std::int64_t all,
                                std::int64_t capacity,
                                Keep keep) {
  CHECK(capacity >= 0, "a capacity of {}", capacity);
  const auto [tokens, k] = matrix_shape("experts", experts);
  check_contiguous("experts", experts);
  check_slots("p", p, tokens, k);
  check_slots("kept_p", kept_p, tokens, k);
  check_slots("kept_experts", kept_experts, tokens, k);
  check_vector("dropped", dropped, 1);
  const Dropping dropping{.slots = tokens * k,
                          .experts = all,
                          .capacity = capacity,
                          .keep = keep,
                          .p = p.data<float>(stream),
                          .expert_of = experts.data<std::int32_t>(stream),
                          .kept_p = kept_p.data<float>(stream),
                          .kept_expert_of = kept_experts.data<std::int32_t>(stream),
                          .dropped = dropped.data<std::int64_t>(stream)};
  stream.enqueue("drop_over_capacity_forward", WorkClass::Memory, [dropping](Workers&) {
    drop(dropping);
  });
}

void drop_over_capacity_dgrad(Stream& stream, Tensor dp, Tensor dkept_p, Tensor kept_experts) {
  const auto [tokens, k] = matrix_shape("kept_experts", kept_experts);
  check_contiguous("kept_experts", kept_experts);
  check_slots("dp", dp, tokens, k);
  check_slots("dkept_p", dkept_p, tokens, k);
  float *to = dp.data<float>(stream), *from = dkept_p.data<float>(stream);
  const std::int32_t* expert_of = kept_experts.data<std::int32_t>(stream);
  const Cut cut = cut_elements(tokens * k);
  stream.enqueue("drop_over_capacity_dgrad", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range slots) {
      for (std::int64_t i = slots.begin; i < slots.end; ++i) {
        to[i] = expert_of[i] < 0 ? 0.0f : from[i];
      }
    });
  });
}

}  // namespace weft::kernels
