#include "weft/model/moe/sorting.h"

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::model {

ExpertRows sort_received(const Context& context,
                         DispatchState& state,
                         const kernels::ExpertGroups& own) {
  Stream& stream = context.stream;
  const Cargo& received = state.received;
  const std::int64_t rows = received.choices_Rk.dim(0), k = received.choices_Rk.dim(1);
  state.place_Rk = context.integers({rows, k});
  state.token_X = context.integers({state.arriving});
  Tensor slot_X = context.integers({state.arriving});
  ExpertRows sorted{.x_XD = context.activation({state.arriving, received.rows_RD.dim(1)}),
                    .p_X = context.activation_fp32({state.arriving}),
                    .rows_L = Tensor(context.pool, DType::I64, {own.width}, Tag::Activations)};
  kernels::sort_by_expert(stream,
                          state.place_Rk,
                          slot_X,
                          state.token_X,
                          sorted.rows_L,
                          received.choices_Rk,
                          own.first,
                          state.rows_each > 0 ? kernels::Room::Padded : kernels::Room::Packed);
  if (state.rows_each > 0) kernels::fill(stream, sorted.rows_L, state.rows_each);
  kernels::gather_rows(stream, sorted.x_XD, received.rows_RD, state.token_X);
  kernels::gather_rows(stream, sorted.p_X, received.p.view({rows * k}), slot_X);
  state.received = {};
  return sorted;
}

Tensor sort_rows(const Context& context, const DispatchState& state, const Tensor& rows_RD) {
  Tensor rows_XD = context.activation({state.arriving, rows_RD.dim(1)});
  kernels::gather_rows(context.stream, rows_XD, rows_RD, state.token_X);
  return rows_XD;
}

void unsort_gradient(const Context& context,
                     DispatchState& state,
                     const Tensor& dx_XD,
                     const Tensor& dp_X) {
  const std::int64_t slots = state.place_Rk.elements();
  kernels::sum_rows(context.stream, state.dreceived.rows_RD, dx_XD, state.place_Rk);
  state.dreceived.p = context.wire_fp32(state.place_Rk.shape());
  kernels::gather_rows(context.stream,
                       state.dreceived.p.view({slots}),
                       dp_X,
                       state.place_Rk.view({slots}));
}

void check_announced(int member, std::int64_t rows, std::int64_t most) {
  if (rows >= 0 && rows <= most) return;
  throw base::SystemError(
      base::text("member {} announces {} rows for this rank; it can have at most {}",
                 member,
                 rows,
                 most));
}

}  // namespace weft::model
