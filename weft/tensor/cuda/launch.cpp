#include "weft/tensor/cuda/launch.h"

#include "weft/tensor/cuda/stream.h"

namespace weft::tensor::cuda {

void enqueue(Stream& stream,
             std::string_view name,
             WorkClass kind,
             const Launch& launch,
             const WorkSize& size) {
  cuda_stream(stream).enqueue_launch(name, kind, launch, size);
}
FaultPlace fault_place(Stream& stream) { return cuda_stream(stream).fault_place(); }
std::byte* workspace(Stream& stream, std::int64_t bytes) {
  return cuda_stream(stream).workspace(bytes);
}
int ordinal_of(Stream& stream) { return cuda_stream(stream).cuda().ordinal(); }

}  // namespace weft::tensor::cuda
