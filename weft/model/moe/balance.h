// The router's auxiliary losses. A load-balancing loss weighs a token's scores with the experts'
// shares of the rows; the three kinds differ in whose rows they count: this micro-batch's, its
// sequence's, or those of all ranks and of the step's micro-batches so far (docs/decisions/0014).
//
// What is counted are the k best experts by score alone, whatever bias, groups and capacity make of
// them. The counts are constants to the gradient. `best_Tk` are these experts where the router's
// choice already is that; undefined: they are found again.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/context.h"

namespace weft::model {

// What a step's micro-batches add up, of one layer; without coefficients.
struct RouterSums {
  Tensor batch_loss_1, sequence_loss_1, global_loss_1, z_loss_1;  // fp32, of all layers
  Tensor rows_1E;    // int64: slots that chose each expert, the dropped ones too
  Tensor dropped_1;  // int64: slots that their expert had no room for
  Tensor global_1E;  // int64: what global_aux_loss counts, of this rank; undefined without it
};

// Of a layer and micro-batch, where there is a global_aux_loss: the sum so far, of this rank and,
// once exchanged, of all that see other tokens.
struct BalanceState {
  Tensor own_1E, all_1E;
};

kernels::Score score_of(const config::ModelConfig& config);

void balance_forward(const Context&,
                     BalanceState&,
                     const Tensor& logits_TE,
                     const Tensor& best_Tk,
                     const RouterSums& sums);
// Between the two: the ranks with other tokens of the same layers.
void balance_exchange(const Context&, BalanceState&, comm::Communicator& others);
// Adds to dlogits.
void balance_dgrad(const Context&,
                   BalanceState&,
                   const Tensor& dlogits_TE,
                   const Tensor& logits_TE,
                   const Tensor& best_Tk,
                   const RouterSums& sums);

}  // namespace weft::model
