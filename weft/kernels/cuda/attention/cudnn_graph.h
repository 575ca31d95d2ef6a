// Describes a computation to cuDNN as a graph of operations on tensors of four dimensions.
//
// Real tensors have memory when the graph runs, found by their number. Scalars are read from the
// host then. All other tensors are virtual: the library's own business.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/kernels/cuda/attention/cudnn_library.h"

namespace weft::kernels::cuda {

using Dims = std::array<std::int64_t, 4>;

// Strides of a tensor without gaps.
inline Dims packed(const Dims& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}
// Swaps the last two dimensions, or their strides.
inline Dims transposed(const Dims& x) { return {x[0], x[1], x[3], x[2]}; }

// View of a tensor; the graph owns it.
struct GraphTensor {
  cudnnBackendDescriptor_t descriptor = nullptr;
  Dims dims{}, strides{};
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = delete;
  ~Graph();

  // Numbers of real tensors and scalars are the caller's, below kFirstVirtual.
  static constexpr std::int64_t kFirstVirtual = 1000;
  GraphTensor real(std::int64_t number,
                   const Dims& dims,
                   const Dims& strides,
                   cudnnDataType_t type);
  GraphTensor scalar(std::int64_t number);  // fp32
  GraphTensor inner(const Dims& dims, const Dims& strides, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  // Makes an fp32 tensor of the shape of x, or of y.
  GraphTensor unary(cudnnPointwiseMode_t mode, const GraphTensor& x);
  GraphTensor binary(cudnnPointwiseMode_t mode, const GraphTensor& x, const GraphTensor& b);
  void unary_into(const GraphTensor& y, cudnnPointwiseMode_t mode, const GraphTensor& x);
  void binary_into(const GraphTensor& y,
                   cudnnPointwiseMode_t mode,
                   const GraphTensor& x,
                   const GraphTensor& b);
  // x if the row's index (dimension 2) is at least the column's (dimension 3), else `hidden`.
  GraphTensor lower_triangle(const GraphTensor& x, const GraphTensor& hidden);
  void matmul(const GraphTensor& c, const GraphTensor& a, const GraphTensor& b);
  // Reduces over the dimensions that are smaller in y.
  void reduce(const GraphTensor& y, cudnnReduceTensorOp_t operation, const GraphTensor& x);
  void reshape(const GraphTensor& y, const GraphTensor& x);

  const std::vector<cudnnBackendDescriptor_t>& operations() const { return operations_; }

 private:
  enum class Kind { Real, Virtual, Scalar };
  struct Pointwise {
    cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const GraphTensor* x = nullptr;
    const GraphTensor* b = nullptr;  // nullptr: no such input
    const GraphTensor* t = nullptr;
    std::int64_t axis = -1;  // -1: none
  };

  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type, std::string_view object);
  GraphTensor tensor(std::int64_t number,
                     const Dims& dims,
                     const Dims& strides,
                     cudnnDataType_t type,
                     Kind kind);
  void pointwise(const GraphTensor& y, const Pointwise& operation);
  GraphTensor index_of(const GraphTensor& x, std::int64_t axis);
  void add(cudnnBackendDescriptor_t operation, std::string_view object);

  std::int64_t next_virtual_ = kFirstVirtual;
  std::vector<Descriptor> descriptors_;  // each after the ones that it names
  std::vector<cudnnBackendDescriptor_t> operations_;
};

}  // namespace weft::kernels::cuda
