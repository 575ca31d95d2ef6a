// Functions of cuDNN, found at run time: libweft_cuda.so loads without cuDNN too. Its headers serve
// the types.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace weft::kernels::cuda {

struct Cudnn {
  std::size_t version = 0;  // 91400 is 9.14.0
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
};

// Loaded once. nullptr: the library is missing, or too old for these functions.
const Cudnn* find_cudnn();
// Requires that the library is there.
const Cudnn& cudnn();

// Throws SystemError: "cudnnBackendFinalize of the plan: CUDNN_STATUS_INTERNAL_ERROR (reason); way
// out". `object` may be empty.
void check(std::string_view call, std::string_view object, cudnnStatus_t status);

struct DestroyDescriptor {
  void operator()(cudnnBackendDescriptor_t descriptor) const {
    cudnn().destroy_descriptor(descriptor);
  }
};
using Descriptor = std::unique_ptr<void, DestroyDescriptor>;

Descriptor make_descriptor(cudnnBackendDescriptorType_t type, std::string_view object);
void set_attribute(cudnnBackendDescriptor_t descriptor,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type,
                   std::int64_t count,
                   const void* values,
                   std::string_view object);
// Number of values.
std::int64_t get_attribute(cudnnBackendDescriptor_t descriptor,
                           cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type,
                           std::int64_t room,
                           void* values,
                           std::string_view object);
void finalize(cudnnBackendDescriptor_t descriptor, std::string_view object);
enum class Support { No, Yes };
// No: the library does not support what the descriptor asks for. Any other error is thrown.
Support try_finalize(cudnnBackendDescriptor_t descriptor, std::string_view object);

}  // namespace weft::kernels::cuda
