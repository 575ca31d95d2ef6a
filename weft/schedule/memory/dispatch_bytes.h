// What each dispatcher keeps and sends, as linear functions of a load.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Beside what these pieces keep whoever moves the rows.
struct DispatchKept {
  Bytes route, dispatch, experts;
  Bytes rows;  // of the experts', the rows themselves
};
DispatchKept dispatch_kept_bytes(const config::ModelConfig& model, const TokenFlow& flow);

// To other ranks, in one direction.
struct DispatchSent {
  Bytes counts, dispatch, combine;
};
DispatchSent dispatch_sent_bytes(const config::ModelConfig& model,
                                 const TokenFlow& flow,
                                 Direction direction);

}  // namespace weft::schedule
