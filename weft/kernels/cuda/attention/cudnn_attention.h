// Attention by cuDNN, for the shapes that it takes. Our own kernels compute all other shapes, and
// all of them if the build or the machine has no cuDNN (no_cudnn.cpp).
#pragma once

#include <string>

#include "weft/kernels/kernels.h"

namespace weft::kernels::cuda {

// attention_forward and attention_dgrad of kernels.h. False: nothing was enqueued, and our own
// kernels must do it. The arguments, the library and the card alone decide.
bool cudnn_attention_forward(Stream& stream,
                             Pool& workspace,
                             const Tensor& o,
                             const Tensor& lse,
                             const Tensor& q,
                             const Tensor& k,
                             const Tensor& v,
                             const AttentionShape& shape);
bool cudnn_attention_dgrad(Stream& stream,
                           Pool& workspace,
                           const Tensor& dq,
                           const Tensor& dk,
                           const Tensor& dv,
                           const Tensor& d_o,
                           const Tensor& o,
                           const Tensor& lse,
                           const Tensor& q,
                           const Tensor& k,
                           const Tensor& v,
                           const AttentionShape& shape);

// "The reason; the way out"; empty: cuDNN is used.
std::string why_no_cudnn();

}  // namespace weft::kernels::cuda
