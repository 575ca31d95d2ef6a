// Sorting of received rows by expert, for dispatchers that send a token once for several experts.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

// Expands received rows by expert of `own`; drops the received cargo and stores the places in the
// state.
ExpertRows sort_received(const Context&, DispatchState&, const kernels::ExpertGroups& own);
// Sorts further rows, from the same routes, by expert.
Tensor sort_rows(const Context&, const DispatchState&, const Tensor& rows_RD);
// Adds a row's gradients over its experts to dreceived.rows_RD (allocated by the caller); gradients
// of its probabilities go to dreceived.p (R, k).
void unsort_gradient(const Context&, DispatchState&, const Tensor& dx_XD, const Tensor& dp_X);

// Throws SystemError if another rank announces an impossible number of rows.
void check_announced(int member, std::int64_t rows, std::int64_t most);

}  // namespace weft::model
