// What tensor-parallel ranks exchange at the ends of their products (product_ends.h), where they do
// it in steps: each a transfer between two ranks, of the tokens of one, under the product of those
// of another. Nothing is computed here. `context.step` says which.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/product_ends.h"

namespace weft::model {

// `gather`: the input of another rank's tokens comes, and its gradient goes home.
void bring_product_input(const Context&, ProductEnds&, comm::Communicator& tp);
void send_product_input_gradient(const Context&, ProductEnds&, comm::Communicator& tp);
// `scatter`: what was made of another rank's tokens goes to it, and its gradient comes.
void send_product_output(const Context&, ProductEnds&, comm::Communicator& tp);
void bring_product_output_gradient(const Context&, ProductEnds&, comm::Communicator& tp);

}  // namespace weft::model
