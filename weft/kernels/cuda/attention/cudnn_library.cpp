#include "weft/kernels/cuda/attention/cudnn_library.h"

#include <array>
#include <optional>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/library.h"
#include "weft/base/text.h"

namespace weft::kernels::cuda {
namespace {

// False: the library has no such symbol.
template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(base::find_symbol(library, name));
  return function != nullptr;
}

std::optional<Cudnn> load() {
  void* library = base::open_foreign("libcudnn.so.9");
  if (library == nullptr) return std::nullopt;
  Cudnn found;
  decltype(&cudnnGetVersion) version = nullptr;
  const bool complete = find(library, "cudnnGetVersion", version) &&
                        find(library, "cudnnGetErrorString", found.error_string) &&
                        find(library, "cudnnGetLastErrorString", found.last_error_string) &&
                        find(library, "cudnnCreate", found.create) &&
                        find(library, "cudnnDestroy", found.destroy) &&
                        find(library, "cudnnSetStream", found.set_stream) &&
                        find(library, "cudnnBackendCreateDescriptor", found.create_descriptor) &&
                        find(library, "cudnnBackendDestroyDescriptor", found.destroy_descriptor) &&
                        find(library, "cudnnBackendSetAttribute", found.set_attribute) &&
                        find(library, "cudnnBackendGetAttribute", found.get_attribute) &&
                        find(library, "cudnnBackendFinalize", found.finalize) &&
                        find(library, "cudnnBackendExecute", found.execute);
  if (!complete) return std::nullopt;
  found.version = version();
  return found;
}

std::string last_error() {
  std::array<char, 2048> message{};
  cudnn().last_error_string(message.data(), message.size());
  return message.data();
}

}  // namespace

const Cudnn* find_cudnn() {
  static const std::optional<Cudnn> kLibrary = load();
  return kLibrary ? &*kLibrary : nullptr;
}

const Cudnn& cudnn() {
  const Cudnn* library = find_cudnn();
  CHECK(library != nullptr, "cuDNN is not loaded");
  return *library;
}

void check(std::string_view call, std::string_view object, cudnnStatus_t status) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw base::SystemError(
      base::text("{}{}{}: {} ({}); CUDNN_LOGLEVEL_DBG=2 and CUDNN_LOGDEST_DBG=stderr in the "
                 "environment of a second run say more",
                 call,
                 object.empty() ? "" : " of ",
                 object,
                 cudnn().error_string(status),
                 last_error()));
}

Descriptor make_descriptor(cudnnBackendDescriptorType_t type, std::string_view object) {
  cudnnBackendDescriptor_t descriptor = nullptr;
  check("cudnnBackendCreateDescriptor", object, cudnn().create_descriptor(type, &descriptor));
  return Descriptor(descriptor);
}

void set_attribute(cudnnBackendDescriptor_t descriptor,
                   cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type,
                   std::int64_t count,
                   const void* values,
                   std::string_view object) {
  check("cudnnBackendSetAttribute",
        object,
        cudnn().set_attribute(descriptor, name, type, count, values));
}

std::int64_t get_attribute(cudnnBackendDescriptor_t descriptor,
                           cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type,
                           std::int64_t room,
                           void* values,
                           std::string_view object) {
  std::int64_t count = 0;
  check("cudnnBackendGetAttribute",
        object,
        cudnn().get_attribute(descriptor, name, type, room, &count, values));
  return count;
}

void finalize(cudnnBackendDescriptor_t descriptor, std::string_view object) {
  check("cudnnBackendFinalize", object, cudnn().finalize(descriptor));
}

Support try_finalize(cudnnBackendDescriptor_t descriptor, std::string_view object) {
  const cudnnStatus_t status = cudnn().finalize(descriptor);
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return Support::No;
  check("cudnnBackendFinalize", object, status);
  return Support::Yes;
}

}  // namespace weft::kernels::cuda
