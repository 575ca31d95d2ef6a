#include "weft/tensor/cuda/transfers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "weft/base/check.h"
#include "weft/tensor/cuda/copy_pieces.h"
#include "weft/tensor/cuda/reduce.h"

namespace weft::tensor::cuda {
namespace {

template <typename T>
void reduce_as(cudaStream_t stream,
               Reduce reduce,
               std::byte* out,
               std::span<const std::byte* const> sources,
               std::int64_t elements) {
  Sources<T> all{};
  for (const std::byte* source : sources) {
    all.at[all.count++] = reinterpret_cast<const T*>(source);
  }
  const Combine combine = reduce == Reduce::Sum ? Combine::Sum : Combine::Max;
  check("reduce", launch_reduce<T>(stream, reinterpret_cast<T*>(out), all, combine, elements));
}

// Amount that the host link carries in less time than a GEMM takes.
constexpr std::int64_t kFewBytes = 1 << 20, kFewPieces = 16;

// Creates a stream with the priority of communication streams: work that waits for their copies
// waits for these too.
void make_stream(cudaStream_t& stream) {
  if (stream != nullptr) return;
  int least = 0, greatest = 0;
  check("cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check("cudaStreamCreateWithPriority",
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
}

#if CUDART_VERSION >= 13000
// Issues all copies in one call: many small calls cost the host more time than the GPU. A GEMM that
// fills every multiprocessor must not delay the copies.
void start_copies(cudaStream_t stream, std::span<const Copy> copies) {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<std::size_t> sizes;
  for (const Copy& copy : copies) {
    if (copy.bytes == 0) continue;
    to.push_back(copy.to);
    from.push_back(copy.from);
    sizes.push_back(std::size_t(copy.bytes));
  }
  if (to.empty()) return;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  attributes.flags = cudaMemcpyFlagPreferOverlapWithCompute;
  std::size_t first = 0;  // first copy that the attributes apply to
  check("cudaMemcpyBatchAsync",
        cudaMemcpyBatchAsync(to.data(),
                             from.data(),
                             sizes.data(),
                             to.size(),
                             &attributes,
                             &first,
                             1,
                             stream));
}
#else
void start_copies(cudaStream_t stream, std::span<const Copy> copies) {
  for (const auto& [to, from, bytes] : copies) {
    if (bytes == 0) continue;
    check("cudaMemcpyAsync",
          cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDefault, stream));
  }
}
#endif

}  // namespace

CudaTransfers::~CudaTransfers() {
  for (const cudaStream_t stream : {second_stream_, third_stream_}) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  for (const std::shared_ptr<Kept>& kept : {on_card_, pinned_}) {
    const std::lock_guard lock(kept->mutex);
    for (const auto& [bytes, data] : kept->free) device_.give_back(kept->memory, data, bytes);
    kept->is_closed = true;
  }
}

void CudaTransfers::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0 || to == from) return;
  if (to < from + bytes && from < to + bytes) {
    const std::shared_ptr<std::byte> between = scratch(bytes);
    copy(between.get(), from, bytes);
    return copy(to, between.get(), bytes);
  }
  check("cudaMemcpyAsync",
        cudaMemcpyAsync(to, from, std::size_t(bytes), cudaMemcpyDefault, stream_));
  check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
}

void CudaTransfers::copy_both(std::span<const Copy> some, std::span<const Copy> others) {
  make_stream(second_stream_);
  start_copies(stream_, some);
  start_copies(second_stream_, others);
  if (!some.empty()) check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
  if (!others.empty()) check("cudaStreamSynchronize", cudaStreamSynchronize(second_stream_));
}

// A copy within the GPU is a kernel, also CUDA's own; it waits for a GEMM that fills every
// multiprocessor. A copy from or to the host does not wait. Small pieces therefore go through host
// memory, which they own until they have arrived.
std::shared_ptr<std::byte> CudaTransfers::start_by_host(std::span<const Copy> pieces,
                                                        std::int64_t bytes) {
  std::shared_ptr<std::byte> host = host_scratch(bytes);
  std::vector<Copy> out, in;
  std::byte* at = host.get();
  for (const auto& [to, from, length] : pieces) {
    out.push_back({at, from, length});
    in.push_back({to, at, length});
    at += length;
  }
  try {
    start_copies(third_stream_, out);
    start_copies(third_stream_, in);
  } catch (...) {
    cudaStreamSynchronize(third_stream_);
    throw;
  }
  return host;
}

// One launch for all pieces: CUDA's copies are one kernel each, whose launch takes longer than a
// piece.
void CudaTransfers::start_pieces(std::span<const Copy> pieces) {
  Pieces some{};
  const auto start = [&] {
    check("copy_pieces", launch_copy_pieces(third_stream_, some));
    some.count = 0;
  };
  for (const auto& [to, from, bytes] : pieces) {
    if (bytes == 0 || to == from) continue;
    some.to[some.count] = to;
    some.from[some.count] = from;
    some.bytes[some.count] = bytes;
    if (++some.count == kMostPieces) start();
  }
  if (some.count > 0) start();
}

void CudaTransfers::copy_pieces(std::span<const Copy> pieces,
                                const std::function<void()>& meanwhile) {
  std::int64_t all = 0;
  for (const Copy& piece : pieces) all += piece.bytes;
  if (all == 0) return meanwhile();
  make_stream(third_stream_);
  std::shared_ptr<std::byte> host;
  try {
    if (all <= kFewBytes && std::ssize(pieces) <= kFewPieces) {
      host = start_by_host(pieces, all);
    } else {
      start_pieces(pieces);
    }
    meanwhile();
  } catch (...) {
    cudaStreamSynchronize(third_stream_);  // the pieces' memory may be freed with the exception
    throw;
  }
  check("cudaStreamSynchronize", cudaStreamSynchronize(third_stream_));
}

void CudaTransfers::clear(std::byte* to, std::int64_t bytes) {
  if (bytes == 0) return;
  check("cudaMemsetAsync", cudaMemsetAsync(to, 0, std::size_t(bytes), stream_));
  check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
}

void CudaTransfers::reduce(DType dtype,
                           Reduce reduce,
                           std::byte* out,
                           std::span<const std::byte* const> sources,
                           std::int64_t elements) {
  check_reducible(dtype);
  if (elements == 0 || sources.empty()) return;
  if (std::ssize(sources) > kMostSources) {
    return reduce_many(dtype, reduce, out, sources, elements);
  }
  if (dtype == DType::F32) reduce_as<float>(stream_, reduce, out, sources, elements);
  if (dtype == DType::F64) reduce_as<double>(stream_, reduce, out, sources, elements);
  if (dtype == DType::I64) reduce_as<std::int64_t>(stream_, reduce, out, sources, elements);
  if (dtype == DType::BF16) reduce_as<__nv_bfloat16>(stream_, reduce, out, sources, elements);
  check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
}

// Successive launches add further sources: equal sums in equal order. Partial sums have memory of
// their own, because `out` may be a later source.
void CudaTransfers::reduce_many(DType dtype,
                                Reduce reduce,
                                std::byte* out,
                                std::span<const std::byte* const> sources,
                                std::int64_t elements) {
  const std::shared_ptr<std::byte> between = scratch(elements * size_of(dtype));
  std::vector<const std::byte*> some(sources.begin(), sources.begin() + kMostSources);
  sources = sources.subspan(kMostSources);
  this->reduce(dtype, reduce, between.get(), some, elements);
  while (!sources.empty()) {
    const auto more = std::min<std::size_t>(kMostSources - 1, sources.size());
    some.assign(1, between.get());
    some.insert(some.end(), sources.begin(), sources.begin() + std::ptrdiff_t(more));
    sources = sources.subspan(more);
    this->reduce(dtype, reduce, sources.empty() ? out : between.get(), some, elements);
  }
}

std::shared_ptr<std::byte> CudaTransfers::scratch(std::int64_t bytes) {
  return lend(on_card_, bytes);
}

std::shared_ptr<std::byte> CudaTransfers::host_scratch(std::int64_t bytes) {
  return lend(pinned_, bytes);
}

std::shared_ptr<std::byte> CudaTransfers::lend(const std::shared_ptr<Kept>& kept,
                                               std::int64_t bytes) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(256, std::size_t(bytes)));
  std::byte* data = nullptr;
  {
    const std::lock_guard lock(kept->mutex);
    if (const auto found = kept->free.find(size); found != kept->free.end()) {
      data = found->second;
      kept->free.erase(found);
    }
  }
  if (data == nullptr) data = device_.take(kept->memory, size);
  return {data, [kept, size](std::byte* at) {
            const std::lock_guard lock(kept->mutex);
            if (!kept->is_closed) {
              kept->free.emplace(size, at);
            } else if (kept->memory == Memory::HostVisible) {
              cudaFreeHost(at);
            } else {
              cudaFree(at);
            }
          }};
}

std::byte* CudaTransfers::on_host(const std::byte* memory) {
  cudaPointerAttributes attributes{};
  check("cudaPointerGetAttributes", cudaPointerGetAttributes(&attributes, memory));
  const bool on_card = attributes.type == cudaMemoryTypeDevice;
  return on_card ? nullptr : const_cast<std::byte*>(memory);
}

}  // namespace weft::tensor::cuda
