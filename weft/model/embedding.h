// Token embedding. Tensor-parallel ranks have the rows of some ids each (model/vocabulary.h): each
// looks up all tokens, and what they find is summed.
#pragma once

#include "weft/model/context.h"

namespace weft::model {

// Zeros where another rank has the row.
Tensor embedding_forward(const Context&, const Tensor& table_VD, const Tensor& ids_T);
void embedding_wgrad(const Context&,
                     const Tensor& dtable_VD,
                     const Tensor& dx_TD,
                     const Tensor& ids_T);

}  // namespace weft::model
