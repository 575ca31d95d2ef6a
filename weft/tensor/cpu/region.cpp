#include "weft/tensor/cpu/region.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/error.h"

namespace weft::tensor::cpu {
namespace {

constexpr std::size_t kGranule = 2u << 20;  // a huge page

// Reserved addresses, not memory. ThreadSanitizer leaves a process few addresses.
#ifdef __SANITIZE_THREAD__
constexpr std::size_t kReservation = std::size_t{256} << 20;
#else
constexpr std::size_t kReservation = std::size_t{4} << 30;
#endif

// Addresses to reserve ahead: none if the process is limited (ulimit -v).
std::size_t reservation() {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? 0 : kReservation;
}

[[noreturn]] void throw_no_memory(std::size_t bytes) {
  base::throw_errno(base::text("cannot allocate {}", base::human_bytes(double(bytes))));
}

std::size_t whole_granules(std::size_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

}  // namespace

CpuRegion::~CpuRegion() {
  for (const std::span<std::byte>& part : reserved_) ::munmap(part.data(), part.size());
}

std::span<std::byte> CpuRegion::grow(std::size_t bytes) {
  const std::size_t size = whole_granules(bytes);
  if (reserved_.empty() || reserved_.back().size() - used_ < size) reserve(size);
  std::byte* more = reserved_.back().data() + used_;
  if (::mprotect(more, size, PROT_READ | PROT_WRITE) != 0) throw_no_memory(size);
  used_ += size;
  return {more, size};
}

bool CpuRegion::grows_in_place() const { return reservation() > 0; }

std::size_t CpuRegion::give_back_end(std::size_t bytes) {
  const std::size_t size = std::min(bytes, used_) / kGranule * kGranule;
  if (size == 0) return 0;
  std::byte* end = reserved_.back().data() + used_ - size;
  if (::mprotect(end, size, PROT_NONE) != 0) return 0;
  ::madvise(end, size, MADV_DONTNEED);
  used_ -= size;
  return size;
}

void CpuRegion::reserve(std::size_t bytes) {
  const std::size_t size = std::max(bytes, reservation());
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = ::mmap(nullptr, size, PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) throw_no_memory(bytes);
  ::madvise(at, size, MADV_HUGEPAGE);  // a hint; its failure changes nothing
  reserved_.emplace_back(static_cast<std::byte*>(at), size);
  used_ = 0;
}

}  // namespace weft::tensor::cpu
