#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

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

// Collects the slots of each expert in token order, then drops those beyond its capacity. One task,
// like sort_by_expert.
void drop(const Dropping& d, const Faults& faults) {
  std::copy_n(d.p, d.slots, d.kept_p);
  std::copy_n(d.expert_of, d.slots, d.kept_expert_of);
  std::vector<std::vector<std::int64_t>> slots_of(static_cast<std::size_t>(d.experts));
  for (std::int64_t slot = 0; slot < d.slots; ++slot) {
    const std::int32_t e = d.expert_of[slot];
    if (e < 0 || e >= d.experts) {
      return faults.raise(FaultCode::ExpertOutOfRange, {e, d.experts});
    }
    slots_of[static_cast<std::size_t>(e)].push_back(slot);
  }
  // NaN comes first: its place does not matter, but the order must be total.
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
  const Dropping dropping{.slots = experts.elements(),
                          .experts = all,
                          .capacity = capacity,
                          .keep = keep,
                          .p = data<float>(stream, p),
                          .expert_of = data<std::int32_t>(stream, experts),
                          .kept_p = data<float>(stream, kept_p),
                          .kept_expert_of = data<std::int32_t>(stream, kept_experts),
                          .dropped = data<std::int64_t>(stream, dropped)};
  const Faults faults(stream);
  enqueue(stream, "drop_over_capacity_forward", WorkClass::Memory, [=](Workers&) {
    drop(dropping, faults);
  });
}

void drop_over_capacity_dgrad(Stream& stream, Tensor dp, Tensor dkept_p, Tensor kept_experts) {
  float *to = data<float>(stream, dp), *from = data<float>(stream, dkept_p);
  const std::int32_t* expert_of = data<std::int32_t>(stream, kept_experts);
  const Cut cut = cut_elements(kept_experts.elements());
  enqueue(stream, "drop_over_capacity_dgrad", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut, [&](Range slots) {
      for (std::int64_t i = slots.begin; i < slots.end; ++i) {
        to[i] = expert_of[i] < 0 ? 0.0f : from[i];
      }
    });
  });
}

}  // namespace weft::kernels::cpu
