#include "weft/derive/context_sharing.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::derive {

using config::CpComm;

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

}  // namespace weft::derive
