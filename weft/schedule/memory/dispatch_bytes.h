// Bytes that each dispatcher keeps and sends, as linear functions of a load.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Bytes kept in addition to those independent of the dispatcher.
struct DispatchKept {
  Bytes route, dispatch, experts;
  Bytes rows;  // part of `experts`: the rows themselves
};
DispatchKept dispatch_kept_bytes(const config::ModelConfig& model, const TokenFlow& flow);

// Bytes to other ranks, in one direction.
struct DispatchSent {
  Bytes counts, dispatch, combine;
};
DispatchSent dispatch_sent_bytes(const config::ModelConfig& model,
                                 const TokenFlow& flow,
                                 Direction direction);

}  // namespace weft::schedule
