// One step of ranks that pass rows on to each other.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/context.h"

namespace weft::model {

// All rows of `sent` go to one member, and as many as `received` has come from another.
void pass_on(const Context&,
             comm::Communicator& ring,
             const Tensor& received,
             const Tensor& sent,
             std::int64_t to,
             std::int64_t from);

}  // namespace weft::model
