// Log of a rank's device memory: every block with the node that made it. A dry step fills it
// (train/guard/memory_prediction.h); every report on the rank's memory derives from it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/schedule/node.h"
#include "weft/tensor/pool.h"

namespace weft::train {

using BytesByTag = std::array<std::size_t, tensor::kTags>;
std::size_t total_of(const BytesByTag& bytes);  // device memory: without offloaded bytes

// Phase of a rank: preparation of the first step, a training step, an evaluation.
enum class Phase { Start, Training, Evaluation };

// Blocks of one tag made by nodes of one kind.
struct PieceBytes {
  tensor::Tag tag = tensor::Tag::Activations;
  std::string piece;  // "F.experts.fc1"; without a node "weights", "inputs" and so on
  std::size_t bytes = 0;
  std::int64_t blocks = 0;
};

// First moment of the peak.
struct PeakMoment {
  Phase phase = Phase::Start;
  std::string node;                // node being issued; empty: before the first
  std::size_t issued = 0;          // index of the node in the step
  BytesByTag bytes{};              // their sum is the peak
  std::vector<PieceBytes> pieces;  // bytes by maker, largest first
  std::int64_t micro_batches = 0;  // number of micro-batches with kept layer activations
};

class MemoryLog : public tensor::PoolWatcher {
 public:
  // Starts a phase; its nodes follow.
  void begin(Phase phase);
  // Attributes later allocations to this node.
  void issue(const schedule::Node& node);

  void taken(const tensor::Block& block) override;
  void given(const tensor::Block& block) override;

  PeakMoment peak() const;
  // Peak bytes during each node of the training step, in issue order.
  std::vector<BytesByTag> timeline() const;

 private:
  // A node, or the work of a phase before its first node.
  struct Doing {
    Phase phase = Phase::Start;
    bool is_node = false;
    schedule::Node node{};
    std::size_t issued = 0;  // index in its phase
  };
  struct Change {
    std::int32_t during = 0, maker = 0;  // indices in doings_
    tensor::Tag tag = tensor::Tag::Activations;
    std::int64_t bytes = 0;  // negative: freed
  };

  static std::string piece_of(const Doing& maker, tensor::Tag tag);
  std::size_t changes_until_peak() const;

  std::vector<Doing> doings_{Doing{}};
  std::vector<Change> changes_;
  std::unordered_map<const tensor::Block*, std::int32_t> makers_;  // makers of the blocks in use
};

}  // namespace weft::train
