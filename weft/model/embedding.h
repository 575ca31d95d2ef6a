// Token embedding. Each tensor-parallel rank has the rows of some ids (model/vocabulary.h): every
// rank looks up all tokens, and the results are summed.
#pragma once

#include "weft/model/weight.h"

namespace weft::model {

// Zero rows for ids of another rank.
Tensor embedding_forward(const Context&, const Weight& table_VD, const Tensor& ids_T);
void embedding_wgrad(const Context&,
                     const Weight& table_VD,
                     const Tensor& dx_TD,
                     const Tensor& ids_T);

}  // namespace weft::model
