#include "weft/measure/bench/endless_copies.h"

#include "weft/tensor/transfers.h"

namespace weft::measure {
namespace {

// Bytes of one copy: as large as a message.
constexpr std::int64_t kBytes = std::int64_t{256} << 20;

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
    // The compute beside the copies meets the same error and reports it.
  }
  stream_.reset();
  device_.give_back(tensor::Memory::Device, memory_, 2 * kBytes);
}

}  // namespace weft::measure
