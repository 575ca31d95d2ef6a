#include "weft/measure/endless_copies.h"

#include "weft/tensor/transfers.h"

namespace weft::measure {
namespace {

constexpr std::int64_t kBytes = std::int64_t{256} << 20;  // of one: as large as a message

}  // namespace

EndlessCopies::EndlessCopies(tensor::Device& device)
    : device_(device),
      memory_(device.take(tensor::Memory::Device, 2 * kBytes)),
      stream_(device.make_stream("copies", tensor::StreamRole::Communication)) {
  stream_->enqueue_host(
      "copies",
      tensor::WorkClass::Copy,
      [this, to = memory_, from = memory_ + kBytes](tensor::Transfers& transfers) {
        while (!is_over_) transfers.copy(to, from, kBytes);
      });
}

EndlessCopies::~EndlessCopies() {
  is_over_ = true;
  try {
    stream_->synchronize();
  } catch (const std::exception&) {
    // Whoever computes beside them meets the same error, and tells it.
  }
  stream_.reset();
  device_.give_back(tensor::Memory::Device, memory_, 2 * kBytes);
}

}  // namespace weft::measure
