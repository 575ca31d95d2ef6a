// Choices of experts without a router. Even: every expert has equally many tokens, and a token's
// experts are anywhere. Lopsided: every second token chooses the lowest experts that it may, so
// that ranks of any layout have unequal shares.
#pragma once

#include <cstdint>
#include <span>

#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

// Writes k distinct experts for each token, ascending, within the groups that it may choose from.
// Deterministic: equal arguments give equal choices.
void choose_evenly(std::span<std::int32_t> chosen,
                   std::int64_t k,
                   std::int64_t experts,
                   const GroupLimit& limit);
void choose_lopsidedly(std::span<std::int32_t> chosen,
                       std::int64_t k,
                       std::int64_t experts,
                       const GroupLimit& limit);

}  // namespace weft::kernels::cpu
