#include "weft/model/embedding.h"

namespace weft::model {

Tensor embedding_forward(const Context& context, const Weight& table_VD, const Tensor& ids_T) {
  Tensor x_TD = context.output({ids_T.dim(0), table_VD.values.dim(1)});
  kernels::embedding_forward(context.stream, x_TD, table_VD.values, ids_T, context.other_ids);
  return x_TD;
}

void embedding_wgrad(const Context& context,
                     const Weight& table_VD,
                     const Tensor& dx_TD,
                     const Tensor& ids_T) {
  write_gradient(context, table_VD, [&](const Tensor& to_VD, kernels::Write how) {
    kernels::embedding_wgrad(context.stream, to_VD, dx_TD, ids_T, how, context.other_ids);
  });
}

}  // namespace weft::model
