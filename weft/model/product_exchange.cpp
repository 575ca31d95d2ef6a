#include "weft/model/product_exchange.h"

#include <utility>

#include "weft/model/ring_pass.h"

namespace weft::model {
namespace {

// Receives the rows of the step's rank at their place among all rows.
void bring(const Context& context,
           comm::Communicator& tp,
           const Tensor& all_TD,
           const Tensor& own_TD) {
  const ProductStep& step = *context.step;
  pass_on(context, tp, context.of_step(all_TD), own_TD, step.mirror, step.rank);
}

// Sends the rows of the step's rank to it, and receives another rank's part of this rank's rows.
void send_home(const Context& context,
               comm::Communicator& tp,
               const Tensor& all_TD,
               Tensor& parts_TD) {
  const ProductStep& step = *context.step;
  if (!parts_TD.defined()) parts_TD = context.wire(all_TD.shape());
  const Tensor come_TD = parts_TD.rows(step.of(step.mirror).begin, step.rows);
  pass_on(context, tp, come_TD, context.of_step(all_TD), step.rank, step.mirror);
}

Tensor all_rows(const Context& context, const Tensor& own_TD) {
  return context.activation({context.step->all(), own_TD.dim(1)});
}

}  // namespace

void bring_product_input(const Context& context, ProductEnds& ends, comm::Communicator& tp) {
  if (context.opens()) ends.x_TD = all_rows(context, ends.own_x_TD);
  bring(context, tp, ends.x_TD, ends.own_x_TD);
}

void send_product_input_gradient(const Context& context,
                                 ProductEnds& ends,
                                 comm::Communicator& tp) {
  send_home(context, tp, ends.dx_TD, ends.dx_parts_TD);
}

void send_product_output(const Context& context, ProductEnds& ends, comm::Communicator& tp) {
  send_home(context, tp, ends.y_TD, ends.y_parts_TD);
}

void bring_product_output_gradient(const Context& context,
                                   ProductEnds& ends,
                                   comm::Communicator& tp) {
  if (context.opens()) {
    ends.own_dy_TD = std::move(ends.dy_TD);
    ends.dy_TD = all_rows(context, ends.own_dy_TD);
  }
  bring(context, tp, ends.dy_TD, ends.own_dy_TD);
}

}  // namespace weft::model
