// Purpose of a pool buffer.
#pragma once

#include <string_view>

namespace weft::tensor {

// Reuse rule of a buffer. InOrder: as pool.h says. Exchanged: for buffers that pipeline stages
// exchange; their user never waits for a communication stream. A buffer that waits for an earlier
// send waits for another rank, an order that no schedule contains; two ranks that wait for each
// other so would deadlock. Such a buffer gets memory whose sends and receives are complete as far
// as the user knows, else new memory. Its memory is separate from all other buffers.
enum class Reuse { InOrder, Exchanged };

// Offloaded: moved to host memory to free device memory. It has a region of its own, and no total
// of device memory counts it.
enum class Tag { Weights, Gradients, Optimizer, Activations, Communication, Workspace, Offloaded };
inline constexpr int kTags = 7;
inline constexpr int kDeviceTags = 6;  // tags before Offloaded
std::string_view name_of(Tag tag);

}  // namespace weft::tensor
