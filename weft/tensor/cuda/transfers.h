// Synchronous transfers by the GPU, on the stream whose host work calls them.
#pragma once

#include <map>
#include <mutex>

#include "weft/tensor/cuda/device.h"
#include "weft/tensor/transfers.h"

namespace weft::tensor::cuda {

class CudaTransfers final : public Transfers {
 public:
  explicit CudaTransfers(CudaDevice& device) : device_(device) {}
  ~CudaTransfers() override;
  // Called once, before any other function.
  void use(cudaStream_t stream) { stream_ = stream; }

  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void copy_both(std::span<const Copy> some, std::span<const Copy> others) override;
  using Transfers::copy_pieces;
  void copy_pieces(std::span<const Copy> pieces, const std::function<void()>& meanwhile) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  std::int64_t segment_bytes() const override { return 4 << 20; }
  void reduce(DType dtype,
              Reduce reduce,
              std::byte* out,
              std::span<const std::byte* const> sources,
              std::int64_t elements) override;
  std::shared_ptr<std::byte> scratch(std::int64_t bytes) override;
  std::shared_ptr<std::byte> host_scratch(std::int64_t bytes) override;
  std::byte* on_host(const std::byte* memory) override;

 private:
  // Memory kept for reuse: allocating GPU memory, or pinning memory, stalls the whole GPU. A handle
  // may outlive the transfers; its memory is then freed with it.
  struct Kept {
    explicit Kept(Memory kind) : memory(kind) {}
    const Memory memory;
    std::mutex mutex;
    std::multimap<std::size_t, std::byte*> free;
    bool is_closed = false;
  };

  std::shared_ptr<std::byte> start_by_host(std::span<const Copy> pieces, std::int64_t bytes);
  void start_pieces(std::span<const Copy> pieces);
  void reduce_many(DType dtype,
                   Reduce reduce,
                   std::byte* out,
                   std::span<const std::byte* const> sources,
                   std::int64_t elements);
  std::shared_ptr<std::byte> lend(const std::shared_ptr<Kept>& kept, std::int64_t bytes);

  CudaDevice& device_;
  cudaStream_t stream_ = nullptr;
  cudaStream_t second_stream_ = nullptr, third_stream_ = nullptr;  // created at first use
  const std::shared_ptr<Kept> on_card_ = std::make_shared<Kept>(Memory::Device);
  const std::shared_ptr<Kept> pinned_ = std::make_shared<Kept>(Memory::HostVisible);
};

}  // namespace weft::tensor::cuda
