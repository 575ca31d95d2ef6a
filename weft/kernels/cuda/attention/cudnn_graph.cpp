#include "weft/kernels/cuda/attention/cudnn_graph.h"

#include "weft/base/check.h"

namespace weft::kernels::cuda {
namespace {

constexpr std::int64_t kAlignment = 16;  // bytes, of every real tensor

void set_type(cudnnBackendDescriptor_t descriptor,
              cudnnBackendAttributeName_t name,
              cudnnDataType_t type,
              std::string_view object) {
  set_attribute(descriptor, name, CUDNN_TYPE_DATA_TYPE, 1, &type, object);
}

void set_number(cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name,
                std::int64_t value,
                std::string_view object) {
  set_attribute(descriptor, name, CUDNN_TYPE_INT64, 1, &value, object);
}

void set_flag(cudnnBackendDescriptor_t descriptor,
              cudnnBackendAttributeName_t name,
              bool value,
              std::string_view object) {
  set_attribute(descriptor, name, CUDNN_TYPE_BOOLEAN, 1, &value, object);
}

void set_dims(cudnnBackendDescriptor_t descriptor,
              cudnnBackendAttributeName_t name,
              const Dims& dims,
              std::string_view object) {
  set_attribute(descriptor,
                name,
                CUDNN_TYPE_INT64,
                static_cast<std::int64_t>(dims.size()),
                dims.data(),
                object);
}

void set_link(cudnnBackendDescriptor_t descriptor,
              cudnnBackendAttributeName_t name,
              cudnnBackendDescriptor_t to,
              std::string_view object) {
  set_attribute(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to, object);
}

}  // namespace

Graph::~Graph() {
  while (!descriptors_.empty()) descriptors_.pop_back();
}

cudnnBackendDescriptor_t Graph::make(cudnnBackendDescriptorType_t type, std::string_view object) {
  descriptors_.push_back(make_descriptor(type, object));
  return descriptors_.back().get();
}

GraphTensor Graph::tensor(std::int64_t number,
                          const Dims& dims,
                          const Dims& strides,
                          cudnnDataType_t type,
                          Kind kind) {
  constexpr std::string_view kObject = "a tensor";
  const auto descriptor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, kObject);
  set_type(descriptor, CUDNN_ATTR_TENSOR_DATA_TYPE, type, kObject);
  set_dims(descriptor, CUDNN_ATTR_TENSOR_DIMENSIONS, dims, kObject);
  set_dims(descriptor, CUDNN_ATTR_TENSOR_STRIDES, strides, kObject);
  set_number(descriptor, CUDNN_ATTR_TENSOR_UNIQUE_ID, number, kObject);
  set_number(descriptor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment, kObject);
  set_flag(descriptor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, kind == Kind::Virtual, kObject);
  set_flag(descriptor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, kind == Kind::Scalar, kObject);
  finalize(descriptor, kObject);
  return {descriptor, dims, strides};
}

GraphTensor Graph::real(std::int64_t number,
                        const Dims& dims,
                        const Dims& strides,
                        cudnnDataType_t type) {
  CHECK(number < kFirstVirtual, "tensor {} of a graph", number);
  return tensor(number, dims, strides, type, Kind::Real);
}

GraphTensor Graph::scalar(std::int64_t number) {
  CHECK(number < kFirstVirtual, "scalar {} of a graph", number);
  return tensor(number, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Kind::Scalar);
}

GraphTensor Graph::inner(const Dims& dims, const Dims& strides, cudnnDataType_t type) {
  return tensor(next_virtual_++, dims, strides, type, Kind::Virtual);
}

void Graph::add(cudnnBackendDescriptor_t operation, std::string_view object) {
  finalize(operation, object);
  operations_.push_back(operation);
}

void Graph::pointwise(const GraphTensor& y, const Pointwise& operation) {
  constexpr std::string_view kObject = "a pointwise operation";
  const auto how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, kObject);
  set_attribute(how,
                CUDNN_ATTR_POINTWISE_MODE,
                CUDNN_TYPE_POINTWISE_MODE,
                1,
                &operation.mode,
                kObject);
  set_type(how, CUDNN_ATTR_POINTWISE_MATH_PREC, operation.compute, kObject);
  if (operation.axis >= 0) set_number(how, CUDNN_ATTR_POINTWISE_AXIS, operation.axis, kObject);
  finalize(how, kObject);
  const auto node = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, kObject);
  const auto link = [&](cudnnBackendAttributeName_t name, const GraphTensor* to) {
    if (to != nullptr) set_link(node, name, to->descriptor, kObject);
  };
  set_link(node, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how, kObject);
  link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, operation.x);
  link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, operation.b);
  link(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, operation.t);
  link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &y);
  add(node, kObject);
}

void Graph::unary_into(const GraphTensor& y, cudnnPointwiseMode_t mode, const GraphTensor& x) {
  pointwise(y, {.mode = mode, .x = &x});
}

void Graph::binary_into(const GraphTensor& y,
                        cudnnPointwiseMode_t mode,
                        const GraphTensor& x,
                        const GraphTensor& b) {
  pointwise(y, {.mode = mode, .x = &x, .b = &b});
}

GraphTensor Graph::unary(cudnnPointwiseMode_t mode, const GraphTensor& x) {
  const GraphTensor y = inner(x.dims, x.strides);
  unary_into(y, mode, x);
  return y;
}

GraphTensor Graph::binary(cudnnPointwiseMode_t mode, const GraphTensor& x, const GraphTensor& b) {
  const GraphTensor y = inner(x.dims, x.strides);
  binary_into(y, mode, x, b);
  return y;
}

GraphTensor Graph::index_of(const GraphTensor& x, std::int64_t axis) {
  const GraphTensor y = inner(x.dims, x.strides, CUDNN_DATA_INT32);
  pointwise(y, {.mode = CUDNN_POINTWISE_GEN_INDEX, .x = &x, .axis = axis});
  return y;
}

GraphTensor Graph::lower_triangle(const GraphTensor& x, const GraphTensor& hidden) {
  const GraphTensor row = index_of(x, 2), column = index_of(x, 3);
  const GraphTensor visible = inner(x.dims, x.strides, CUDNN_DATA_BOOLEAN);
  pointwise(
      visible,
      {.mode = CUDNN_POINTWISE_CMP_GE, .compute = CUDNN_DATA_BOOLEAN, .x = &row, .b = &column});
  const GraphTensor y = inner(x.dims, x.strides);
  pointwise(y, {.mode = CUDNN_POINTWISE_BINARY_SELECT, .x = &x, .b = &hidden, .t = &visible});
  return y;
}

void Graph::matmul(const GraphTensor& c, const GraphTensor& a, const GraphTensor& b) {
  constexpr std::string_view kObject = "a matrix product";
  const auto how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR, kObject);
  set_type(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT, kObject);
  finalize(how, kObject);
  const auto node = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_MATMUL_DESC, how, kObject);
  add(node, kObject);
}

void Graph::reduce(const GraphTensor& y, cudnnReduceTensorOp_t operation, const GraphTensor& x) {
  constexpr std::string_view kObject = "a reduction";
  const auto how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, kObject);
  set_attribute(how,
                CUDNN_ATTR_REDUCTION_OPERATOR,
                CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                1,
                &operation,
                kObject);
  set_type(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT, kObject);
  finalize(how, kObject);
  const auto node = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how, kObject);
  add(node, kObject);
}

void Graph::reshape(const GraphTensor& y, const GraphTensor& x) {
  constexpr std::string_view kObject = "a reshape";
  const auto node = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor, kObject);
  set_link(node, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor, kObject);
  add(node, kObject);
}

}  // namespace weft::kernels::cuda
