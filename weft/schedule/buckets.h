// Buckets for reducing a rank's gradients and gathering its weights, with the pieces that write and
// read each. Used by the anatomy only.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

std::vector<BucketAnatomy> buckets_of(const config::ModelConfig& model,
                                      const derive::BufferScheme& buffers,
                                      const derive::Holding& holding);

}  // namespace weft::schedule
