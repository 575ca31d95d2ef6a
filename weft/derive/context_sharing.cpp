#include "weft/derive/context_sharing.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::derive {

using config::CpComm;
namespace {

bool has_kind(const config::ModelConfig& model, CpComm kind) {
  const bool is_shared = model.context_parallel_size > 1;
  return is_shared && std::ranges::find(model.cp_comm_type, kind) != model.cp_comm_type.end();
}

}  // namespace

AttentionSharing attention_sharing(const config::ModelConfig& model, std::int64_t layer) {
  const std::int64_t cp = model.context_parallel_size;
  if (cp == 1) return {};
  const bool is_one_word = model.cp_comm_type.size() == 1;
  const CpComm kind = model.cp_comm_type[base::at(is_one_word ? 0 : layer)];
  const auto ring = [&](std::int64_t head_ranks) {
    const std::int64_t key_ranks = cp / head_ranks;
    return AttentionSharing{head_ranks,
                            key_ranks,
                            key_ranks > 1 ? KeyExchange::Ring : KeyExchange::None};
  };
  switch (kind) {
    case CpComm::P2p:
      return ring(1);
    case CpComm::AllToAll:
      return ring(cp);
    case CpComm::AllToAllP2p:
      return ring(model.hierarchical_context_parallel_sizes.front());
    case CpComm::AllGather:
      return {.head_ranks = 1, .key_ranks = cp, .keys = KeyExchange::Gather};
  }
  UNREACHABLE("cp_comm_type {}", config::word(kind));
}

bool exchanges_heads(const config::ModelConfig& model) {
  if (has_kind(model, CpComm::AllToAll)) return true;
  const std::vector<std::int64_t>& sizes = model.hierarchical_context_parallel_sizes;
  return has_kind(model, CpComm::AllToAllP2p) && !sizes.empty() && sizes.front() > 1;
}

bool passes_keys_on(const config::ModelConfig& model) {
  if (has_kind(model, CpComm::P2p)) return true;
  const std::vector<std::int64_t>& sizes = model.hierarchical_context_parallel_sizes;
  return has_kind(model, CpComm::AllToAllP2p) && !sizes.empty() && sizes.back() > 1;
}

}  // namespace weft::derive
