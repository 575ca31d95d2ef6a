#include "weft/train/host_worker.h"

#include "weft/kernels/device.h"

namespace weft::train {

HostWorker::HostWorker(tensor::Device& device, int threads)
    : beside_(device.is_the_host() ? nullptr : kernels::make_cpu_device(threads)),
      stream_((beside_ ? *beside_ : device).make_stream("host", tensor::StreamRole::Alone)) {}

}  // namespace weft::train
