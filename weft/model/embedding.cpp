#include "weft/model/embedding.h"

namespace weft::model {

Tensor embedding_forward(const Context& context, const Tensor& table_VD, const Tensor& ids_T) {
  Tensor x_TD = context.output({ids_T.dim(0), table_VD.dim(1)});
  kernels::embedding_forward(context.stream, x_TD, table_VD, ids_T, context.other_ids);
  return x_TD;
}

void embedding_wgrad(const Context& context,
                     const Tensor& dtable_VD,
                     const Tensor& dx_TD,
                     const Tensor& ids_T) {
  kernels::embedding_wgrad(context.stream,
                           dtable_VD,
                           dx_TD,
                           ids_T,
                           context.gradient_write,
                           context.other_ids);
}

}  // namespace weft::model
