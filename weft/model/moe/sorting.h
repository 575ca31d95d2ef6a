// Rows that arrive with their choices, sorted by expert where they arrive: what dispatchers share
// that send a token once for several experts.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

// What arrived, expanded by expert of `own`; drops it and leaves the places in the state.
ExpertRows sort_received(const Context&, DispatchState&, const kernels::ExpertGroups& own);
// Rows that came the same way, by expert.
Tensor sort_rows(const Context&, const DispatchState&, const Tensor& rows_RD);
// A row's gradients over its experts are added into dreceived.rows_RD (made by the caller); those
// of its probabilities go to dreceived.p (R, k).
void unsort_gradient(const Context&, DispatchState&, const Tensor& dx_XD, const Tensor& dp_X);

// SystemError where another rank announces what it cannot have.
void check_announced(int member, std::int64_t rows, std::int64_t most);

}  // namespace weft::model
