// Exchanges between ranks about a save, between steps.
#pragma once

#include <string>
#include <vector>

#include "weft/train/engine.h"
#include "weft/train/saves/state_owners.h"

namespace weft::train {

// All ranks call the same function.
class SaveTalk {
 public:
  explicit SaveTalk(Engine& engine);

  // Gathers every rank's numbers by rank; each rank passes the same count.
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& own);

  std::vector<std::vector<EntryKey>> gather_keys(const std::vector<EntryKey>& own);

  // Every rank's text on rank 0, by rank; empty on the others.
  std::vector<std::string> collect(const std::string& own);

 private:
  tensor::Pool& pool_;
  comm::Communicator& world_;
  tensor::Stream& stream_;
};

}  // namespace weft::train
