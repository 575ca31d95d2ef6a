// What a buffer of the pool is for.
#pragma once

#include <string_view>

namespace weft::tensor {

// Which memory a buffer may get. InOrder: as pool.h says. Exchanged: for what pipeline stages
// exchange. Its user never waits for a stream of communication: a buffer that waits for an earlier
// send waits for another rank, an order no schedule knows of, and two ranks that wait so for each
// other wait for ever. It gets memory whose sends and receives are over by what the user knows,
// else new memory. Such buffers are apart from all others.
enum class Reuse { InOrder, Exchanged };

// Offloaded: in host memory, so that the device has room for something else. It has a region of its
// own and is counted apart: no total of the device's memory has it.
enum class Tag { Weights, Gradients, Optimizer, Activations, Communication, Workspace, Offloaded };
inline constexpr int kTags = 7;
inline constexpr int kDeviceTags = 6;  // of them, those before Offloaded
std::string_view name_of(Tag tag);

}  // namespace weft::tensor
