// The buckets that a rank's gradients are summed in and its weights gathered in: which pieces write
// and read each. Seen by the anatomy alone.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

std::vector<BucketAnatomy> buckets_of(const config::ModelConfig& model,
                                      const derive::BufferScheme& buffers,
                                      const derive::Holding& holding);

}  // namespace weft::schedule
