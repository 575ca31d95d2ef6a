// What ranks tell each other of a save; between steps.
#pragma once

#include <string>
#include <vector>

#include "weft/train/engine.h"
#include "weft/train/state_owners.h"

namespace weft::train {

// Every rank calls the same function.
class SaveTalk {
 public:
  explicit SaveTalk(Engine& engine);

  // Equally many numbers of every rank, by rank.
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& own);

  std::vector<std::vector<EntryKey>> gather_keys(const std::vector<EntryKey>& own);

  // Every rank's text on rank 0, by rank; nothing on the others.
  std::vector<std::string> collect(const std::string& own);

 private:
  tensor::Pool& pool_;
  comm::Communicator& world_;
  tensor::Stream& stream_;
};

}  // namespace weft::train
