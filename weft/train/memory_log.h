// What a rank's device memory is made of while it runs: every block with the node that made it.
// Filled by a dry step (memory_prediction.h); everything that is said of its memory follows from
// it.
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
std::size_t total_of(const BytesByTag& bytes);  // of the device's memory: without what is offloaded

// What a rank is doing: becoming ready for its first step, a training step, an evaluation.
enum class Phase { Start, Training, Evaluation };

// Blocks of one tag that nodes of one kind made.
struct PieceBytes {
  tensor::Tag tag = tensor::Tag::Activations;
  std::string piece;  // "F.experts.fc1"; without a node "weights", "inputs" and the like
  std::size_t bytes = 0;
  std::int64_t blocks = 0;
};

// The first moment at which most bytes are in use.
struct PeakMoment {
  Phase phase = Phase::Start;
  std::string node;                // that was being issued; empty: before the first
  std::size_t issued = 0;          // its number in the step
  BytesByTag bytes{};              // their total is the peak
  std::vector<PieceBytes> pieces;  // the same bytes by maker, largest first
  std::int64_t micro_batches = 0;  // that keep activations of layers
};

class MemoryLog : public tensor::PoolWatcher {
 public:
  // Nodes of another step follow.
  void begin(Phase phase);
  // What is taken from now on is made by this node.
  void issue(const schedule::Node& node);

  void taken(const tensor::Block& block) override;
  void given(const tensor::Block& block) override;

  PeakMoment peak() const;
  // Of the training step, by node as issued: the bytes when the most were in use during it.
  std::vector<BytesByTag> timeline() const;

 private:
  // A node, or what a phase does before its first.
  struct Doing {
    Phase phase = Phase::Start;
    bool is_node = false;
    schedule::Node node{};
    std::size_t issued = 0;  // in its phase
  };
  struct Change {
    std::int32_t during = 0, maker = 0;  // in doings_
    tensor::Tag tag = tensor::Tag::Activations;
    std::int64_t bytes = 0;  // less than 0: given back
  };

  static std::string piece_of(const Doing& maker, tensor::Tag tag);
  std::size_t changes_until_peak() const;

  std::vector<Doing> doings_{Doing{}};
  std::vector<Change> changes_;
  std::unordered_map<const tensor::Block*, std::int32_t> makers_;  // of what is in use
};

}  // namespace weft::train
