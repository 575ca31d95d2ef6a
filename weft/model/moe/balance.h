// Auxiliary losses of the router. A load-balancing loss weighs a token's scores with the experts'
// shares of the rows. The three kinds count different rows: those of this micro-batch, of its
// sequence, or of all ranks and of the step's micro-batches so far (docs/decisions/0014).
//
// If ranks share the tokens of a micro-batch (tp x cp), each counts its own. The counts are summed
// between forward and gradient (tally), and the losses become known with the gradient. A rank's
// loss is its part of the micro-batch's; the mean over these ranks is the loss.
//
// Counted are the k best experts by score alone, before bias, groups and capacity. The counts are
// constants for the gradient. `best_Tk`: these experts, if the router's choice equals them;
// undefined: they are computed again.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/context.h"

namespace weft::model {

// Sums over a step's micro-batches, for one layer; without coefficients.
struct RouterSums {
  Tensor batch_loss_1, sequence_loss_1, global_loss_1, z_loss_1;  // fp32, shared by all layers
  Tensor rows_1E;    // int64: slots that chose each expert, including dropped ones
  Tensor dropped_1;  // int64: slots dropped for lack of capacity
  Tensor global_1E;  // int64: this rank's counts for global_aux_loss; undefined: no such loss
};

// State of a layer and micro-batch.
struct BalanceState {
  // With global_aux_loss: sum so far of this rank and, after the exchange, of all ranks with other
  // tokens.
  Tensor own_1E, all_1E;
  // If ranks share the micro-batch: its rows (aux_loss), then those of each of its sequences
  // (seq_aux_loss); of this rank and, after the tally, of all of them.
  Tensor tally_RE;
};

kernels::Score score_of(const config::ModelConfig& config);

void balance_forward(const Context&,
                     BalanceState&,
                     const Tensor& logits_TE,
                     const Tensor& best_Tk,
                     const RouterSums& sums);
// Exchanges between forward and gradient: over ranks with other tokens of the same layers, and over
// ranks with other tokens of the same micro-batch.
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
