// What the messages about experts say, for the backend that answers them
// (runtime.backend=loopback).
#pragma once

#include <map>
#include <string>

#include "weft/comm/launch.h"
#include "weft/rules/judged_config.h"

namespace weft::train {

// For rank 0, by the name of the group (train/groups.h). Its peers send to each other and to it
// what it sends, turned: the peer that is so many ranks away sends to an expert what rank 0 sends
// to the expert with the same number on the rank so many further away. So rows for a peer's experts
// return as the peer's rows for the local experts, and every rank gets as many rows as rank 0 sends
// in all.
std::map<std::string, comm::ExpertMessages> expert_messages(const rules::JudgedConfig& config);

}  // namespace weft::train
