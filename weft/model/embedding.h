// Token embedding.
#pragma once

#include "weft/model/context.h"

namespace weft::model {

Tensor embedding_forward(const Context&, const Tensor& table_VD, const Tensor& ids_T);
void embedding_wgrad(const Context&,
                     const Tensor& dtable_VD,
                     const Tensor& dx_TD,
                     const Tensor& ids_T);

}  // namespace weft::model
