// Expert layout of messages, for the backend that answers them (runtime.backend=loopback).
#pragma once

#include <map>
#include <string>

#include "weft/comm/launch.h"
#include "weft/rules/judged_config.h"

namespace weft::train {

// Expert messages for rank 0, by group name (train/groups.h). Peers send what rank 0 sends,
// rotated: peer d sends to an expert what rank 0 sends to the expert of equal local index d ranks
// further on. Rows for a peer's experts therefore return as that peer's rows for the local experts.
// Every rank receives the number of rows that rank 0 sends.
std::map<std::string, comm::ExpertMessages> expert_messages(const rules::JudgedConfig& config);

}  // namespace weft::train
