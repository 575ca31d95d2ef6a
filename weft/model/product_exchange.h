// Stepwise exchange of tensor-parallel ranks at the ends of their products (product_ends.h). A step
// transfers the tokens of one rank between two ranks, under the product of another rank's tokens.
// No computation here; `context.step` identifies the step.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/product_ends.h"

namespace weft::model {

// `gather`: receives the input of another rank's tokens, and sends its gradient back.
void bring_product_input(const Context&, ProductEnds&, comm::Communicator& tp);
void send_product_input_gradient(const Context&, ProductEnds&, comm::Communicator& tp);
// `scatter`: sends the output for another rank's tokens to it, and receives the gradient.
void send_product_output(const Context&, ProductEnds&, comm::Communicator& tp);
void bring_product_output_gradient(const Context&, ProductEnds&, comm::Communicator& tp);

}  // namespace weft::model
