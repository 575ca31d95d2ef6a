#include "weft/train/log/memory_log.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::train {
namespace {

using base::at;

std::size_t& of_tag(BytesByTag& bytes, tensor::Tag tag) {
  return bytes[static_cast<std::size_t>(tag)];
}

bool is_counted(const tensor::Block& block) {
  return block.bytes() > 0 && block.tag() != tensor::Tag::Offloaded;
}

}  // namespace

std::size_t total_of(const BytesByTag& bytes) {
  return std::accumulate(bytes.begin(), bytes.begin() + tensor::kDeviceTags, std::size_t{0});
}

void MemoryLog::begin(Phase phase) { doings_.push_back({.phase = phase}); }

void MemoryLog::issue(const schedule::Node& node) {
  const Doing& before = doings_.back();
  doings_.push_back({.phase = before.phase,
                     .is_node = true,
                     .node = node,
                     .issued = before.is_node ? before.issued + 1 : 0});
}

void MemoryLog::taken(const tensor::Block& block) {
  if (!is_counted(block)) return;
  const auto now = static_cast<std::int32_t>(doings_.size() - 1);
  makers_[&block] = now;
  changes_.push_back({.during = now,
                      .maker = now,
                      .tag = block.tag(),
                      .bytes = static_cast<std::int64_t>(block.bytes())});
}

void MemoryLog::given(const tensor::Block& block) {
  if (!is_counted(block)) return;
  const auto found = makers_.find(&block);
  CHECK(found != makers_.end(), "a block is given back that was never taken");
  changes_.push_back({.during = static_cast<std::int32_t>(doings_.size() - 1),
                      .maker = found->second,
                      .tag = block.tag(),
                      .bytes = -static_cast<std::int64_t>(block.bytes())});
  makers_.erase(found);
}

std::size_t MemoryLog::changes_until_peak() const {
  std::int64_t now = 0, most = 0;
  std::size_t until = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].tag == tensor::Tag::Offloaded) continue;
    now += changes_[i].bytes;
    if (now <= most) continue;
    most = now;
    until = i + 1;
  }
  return until;
}

// Name of the maker, without layer and micro-batch.
std::string MemoryLog::piece_of(const Doing& maker, tensor::Tag tag) {
  if (maker.is_node) {
    return schedule::print(
        {.direction = maker.node.direction, .piece = maker.node.piece, .part = maker.node.part});
  }
  switch (tag) {
    case tensor::Tag::Weights:
    case tensor::Tag::Gradients:
    case tensor::Tag::Optimizer:
      return std::string(tensor::name_of(tag));
    case tensor::Tag::Offloaded:
      return "optimizer";
    case tensor::Tag::Activations:
    case tensor::Tag::Communication:
    case tensor::Tag::Workspace:
      return maker.phase == Phase::Start ? "tables" : "inputs";
  }
  UNREACHABLE("tag {}", static_cast<int>(tag));
}

PeakMoment MemoryLog::peak() const {
  const std::size_t until = changes_until_peak();
  PeakMoment moment;
  if (until == 0) return moment;
  const Doing& doing = doings_[at(changes_[until - 1].during)];
  moment.phase = doing.phase;
  if (doing.is_node) moment.node = schedule::print(doing.node);
  moment.issued = doing.issued;

  struct Made {
    std::int64_t bytes = 0, blocks = 0;
  };
  std::map<std::pair<std::int32_t, tensor::Tag>, Made> by_maker;
  for (std::size_t i = 0; i < until; ++i) {
    Made& made = by_maker[{changes_[i].maker, changes_[i].tag}];
    made.bytes += changes_[i].bytes;
    made.blocks += changes_[i].bytes > 0 ? 1 : -1;
  }
  std::map<std::pair<tensor::Tag, std::string>, PieceBytes> pieces;
  std::set<int> in_flight;
  for (const auto& [key, made] : by_maker) {
    if (made.bytes == 0) continue;
    const auto& [number, tag] = key;
    const Doing& maker = doings_[at(number)];
    PieceBytes& piece = pieces[{tag, piece_of(maker, tag)}];
    piece.bytes += static_cast<std::size_t>(made.bytes);
    piece.blocks += made.blocks;
    of_tag(moment.bytes, tag) += static_cast<std::size_t>(made.bytes);
    if (tag == tensor::Tag::Activations && maker.is_node && maker.node.layer != schedule::kNone) {
      in_flight.insert(maker.node.micro_batch);
    }
  }
  for (auto& [key, piece] : pieces) {
    std::tie(piece.tag, piece.piece) = key;
    moment.pieces.push_back(std::move(piece));
  }
  std::ranges::stable_sort(moment.pieces, std::ranges::greater{}, &PieceBytes::bytes);
  moment.micro_batches = std::ssize(in_flight);
  return moment;
}

std::vector<BytesByTag> MemoryLog::timeline() const {
  std::vector<BytesByTag> most;
  BytesByTag now{};
  std::size_t next = 0;
  for (std::size_t i = 0; i < doings_.size(); ++i) {
    BytesByTag here = now;
    for (; next < changes_.size() && at(changes_[next].during) == i; ++next) {
      of_tag(now, changes_[next].tag) += static_cast<std::size_t>(changes_[next].bytes);
      if (total_of(now) > total_of(here)) here = now;
    }
    if (doings_[i].phase == Phase::Training && doings_[i].is_node) most.push_back(here);
  }
  return most;
}

}  // namespace weft::train
