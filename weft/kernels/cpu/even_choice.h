// Choices of experts that no router made. As good as routers get: every expert has as many tokens
// as any other, and a token's experts are of any places. And lopsided: every second token chooses
// the lowest experts that it may, so that wherever experts are shared out, shares differ from even
// ones.
#pragma once

#include <cstdint>
#include <span>

#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

// Different experts for each of the tokens, ascending, within the groups that it may choose from:
// `chosen` has k of them for each, token by token. The same choice for the same numbers.
void choose_evenly(std::span<std::int32_t> chosen,
                   std::int64_t k,
                   std::int64_t experts,
                   const GroupLimit& limit);
void choose_lopsidedly(std::span<std::int32_t> chosen,
                       std::int64_t k,
                       std::int64_t experts,
                       const GroupLimit& limit);

}  // namespace weft::kernels::cpu
