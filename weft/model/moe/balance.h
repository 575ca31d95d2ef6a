// The router's auxiliary losses. A load-balancing loss weighs a token's scores with the experts'
// shares of the rows; the three kinds differ in whose rows they count: this micro-batch's, its
// sequence's, or those of all ranks and of the step's micro-batches so far (docs/decisions/0014).
//
// Where ranks share the tokens of a micro-batch (tp x cp) each counts its own, and the counts are
// summed between the forward and the gradient (tally); the losses are then known with the gradient,
// and a rank's is its part of the micro-batch's. Their mean over these ranks is the loss.
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

// Of a layer and micro-batch.
struct BalanceState {
  // Where there is a global_aux_loss: the sum so far, of this rank and, once exchanged, of all that
  // see other tokens.
  Tensor own_1E, all_1E;
  // Where ranks share the micro-batch: its rows (for aux_loss), then those of each of its sequences
  // (for seq_aux_loss); of this rank and, once tallied, of all of them.
  Tensor tally_RE;
};

kernels::Score score_of(const config::ModelConfig& config);

void balance_forward(const Context&,
                     BalanceState&,
                     const Tensor& logits_TE,
                     const Tensor& best_Tk,
                     const RouterSums& sums);
// Between the two: the ranks with other tokens of the same layers, and those with other tokens of
// the same micro-batch.
void balance_exchange(const Context&, BalanceState&, comm::Communicator& others);
void balance_tally(const Context&, BalanceState&, comm::Communicator& sharers);
// Adds to dlogits.
void balance_dgrad(const Context&,
                   BalanceState&,
                   const Tensor& dlogits_TE,
                   const Tensor& logits_TE,
                   const Tensor& best_Tk,
                   const RouterSums& sums);

}  // namespace weft::model
