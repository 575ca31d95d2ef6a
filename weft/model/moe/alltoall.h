// The dropless all-to-all dispatcher: one row per (token, expert) pair travels to the rank that
// owns the expert, its probability with it, and the expert's output travels back.
//
// Six stages, in which local work and communication alternate: permute (local), dispatch
// (communication), arrange (local, inside the experts piece), restore (local, same piece), combine
// (communication), merge (local). Only dispatch and combine move bulk bytes. The backward mirrors
// them. The state is a value per (layer, micro-batch): several micro-batches are in flight.
//
// Suffixes: R rows this rank sends (wire order: by global expert), X rows it receives.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/moe/exchange.h"
#include "weft/model/moe/route.h"

namespace weft::model {

struct DispatchState {
  Tensor counts_GE;  // int64: every rank's rows for every expert
  Exchange plan;
  Tensor sent_RD, sent_p_R;
  Tensor received_XD, received_p_X;
  Tensor output_XD;    // expert outputs in wire order
  Tensor returned_RD;  // the same, back home
  Tensor dreturned_RD;
  Tensor doutput_XD;
  Tensor dreceived_XD, dreceived_p_X;
  Tensor dsent_RD, dsent_p_R;
};

// Ranks exchange row counts; then the host reads them.
void counts_forward(const Context&, DispatchState&, const RouteState&, comm::Communicator& ep);
void sizes_forward(DispatchState&, const RouteState&, const comm::Communicator& ep);

void permute_forward(const Context&, DispatchState&, const RouteState&);
void dispatch_forward(const Context&, DispatchState&, comm::Communicator& ep);
void combine_forward(const Context&, DispatchState&, comm::Communicator& ep);
// y = h + the sum of each token's expert outputs.
Tensor merge_forward(const Context&, DispatchState&, const RouteState&, const Tensor& h_TD);

void merge_dgrad(const Context&, DispatchState&, const RouteState&, const Tensor& dy_TD);
void combine_dgrad(const Context&, DispatchState&, comm::Communicator& ep);
void dispatch_dgrad(const Context&, DispatchState&, comm::Communicator& ep);
// Leaves the gradients of the norm's output and of the probabilities in the routing state.
void permute_dgrad(const Context&, DispatchState&, RouteState&);

// Between wire order and expert order; without a copy where the two are the same.
enum class RowOrder { Expert, Wire };
Tensor reorder(const Context&, const DispatchState&, const Tensor& rows, RowOrder to);

}  // namespace weft::model
