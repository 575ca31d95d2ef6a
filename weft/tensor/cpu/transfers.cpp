#include "weft/tensor/cpu/transfers.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "weft/tensor/cpu/reduce.h"
#include "weft/tensor/cpu/streaming_copy.h"

namespace weft::tensor::cpu {

void CpuTransfers::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  std::memmove(device_.reach(to), device_.reach(from), static_cast<std::size_t>(bytes));
}

void CpuTransfers::copy_away(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  streaming_copy(device_.reach(to), device_.reach(from), static_cast<std::size_t>(bytes));
}

void CpuTransfers::copy_both(std::span<const Copy> some, std::span<const Copy> others) {
  for (const std::span<const Copy> copies : {some, others}) {
    for (const auto& [to, from, bytes] : copies) copy(to, from, bytes);
  }
}

void CpuTransfers::clear(std::byte* to, std::int64_t bytes) {
  if (bytes > 0) std::memset(device_.reach(to), 0, static_cast<std::size_t>(bytes));
}

void CpuTransfers::reduce(DType dtype,
                          Reduce reduce,
                          std::byte* out,
                          std::span<const std::byte* const> sources,
                          std::int64_t elements) {
  std::vector<const std::byte*> reached(sources.begin(), sources.end());
  for (const std::byte*& source : reached) source = device_.reach(source);
  reduce_in_order(dtype, reduce, device_.reach(out), reached, elements);
}

// A piece of device memory if the device hides it, else plain memory, which is cheaper to get.
std::shared_ptr<std::byte> CpuTransfers::scratch(std::int64_t bytes) {
  if (!device_.hides_memory()) return host_scratch(bytes);
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes));
  return {device_.take(Memory::Device, size),
          [this, size](std::byte* data) { device_.give_back(Memory::Device, data, size); }};
}

std::shared_ptr<std::byte> CpuTransfers::host_scratch(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes));
  return {new std::byte[size], std::default_delete<std::byte[]>()};
}

std::byte* CpuTransfers::on_host(const std::byte* memory) {
  const bool hidden = device_.reach(memory) != memory;
  return hidden ? nullptr : const_cast<std::byte*>(memory);
}

}  // namespace weft::tensor::cpu
