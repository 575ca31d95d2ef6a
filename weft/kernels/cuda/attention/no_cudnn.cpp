// Stands in for cudnn_attention.cpp if the build found no headers of cuDNN.
#include "weft/kernels/cuda/attention/cudnn_attention.h"

namespace weft::kernels::cuda {

bool cudnn_attention_forward(Stream&,
                             Pool&,
                             const Tensor&,
                             const Tensor&,
                             const Tensor&,
                             const Tensor&,
                             const Tensor&,
                             const AttentionShape&) {
  return false;
}

bool cudnn_attention_dgrad(Stream&,
                           Pool&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const AttentionShape&) {
  return false;
}

std::string why_no_cudnn() {
  return "this build has no cuDNN; configure and build again where its headers are (apt-get "
         "install "
         "libcudnn9-dev-cuda-13, or 12 as the toolkit is)";
}

}  // namespace weft::kernels::cuda
