// One step of a ring exchange.
#pragma once

#include "weft/comm/communicator.h"
#include "weft/model/context.h"

namespace weft::model {

// Sends all rows of `sent` to member `to`, and receives `received` from member `from`.
void pass_on(const Context&,
             comm::Communicator& ring,
             const Tensor& received,
             const Tensor& sent,
             std::int64_t to,
             std::int64_t from);

}  // namespace weft::model
