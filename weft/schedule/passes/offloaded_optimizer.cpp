#include "weft/schedule/passes/offloaded_optimizer.h"

#include <algorithm>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

using base::at;

constexpr Node kAllCopies{.piece = Piece::Reduce, .part = Part::Copied};
constexpr Node kBothTables{.piece = Piece::Tie};

bool ends_with(const Anatomy& anatomy, const Node& node) {
  return std::ranges::find(anatomy.step_end, node, &StepNodeAnatomy::node) !=
         anatomy.step_end.end();
}

bool overlap(const base::Range& a, const base::Range& b) {
  return a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

// A download starts when gradients are final: summed over all ranks that have them.
StepNodeAnatomy download_of(const Anatomy& anatomy,
                            const BucketAnatomy& bucket,
                            const OffloadedAnatomy& offloaded) {
  StepNodeAnatomy download{.node = offloaded.download(), .lane = Lane::Copy};
  if (bucket.part == Part::Dense && ends_with(anatomy, kAllCopies)) {
    download.after = {kAllCopies};
    return download;
  }
  for (const Node& sum : {bucket.widen(), bucket.reduce()}) {
    if (!ends_with(anatomy, sum)) continue;
    download.after = {sum};
    return download;
  }
  // Without sums over other ranks: as soon as the gradients to copy are written.
  if (bucket.has_table && ends_with(anatomy, kBothTables)) download.after = {kBothTables};
  for (const BucketItem& item : bucket.items) {
    if (!overlap(item.elements, offloaded.elements)) continue;
    for (const PieceAt& user : item.users) {
      if (std::ranges::find(download.gradients, user) == download.gradients.end()) {
        download.gradients.push_back(user);
      }
    }
  }
  return download;
}

std::vector<OffloadedAnatomy> offloaded_buckets(const Anatomy& anatomy,
                                                const derive::OptimizerOffload& offload) {
  std::vector<OffloadedAnatomy> all;
  std::map<Part, int> count;
  for (const BucketAnatomy& bucket : anatomy.buckets) {
    for (const base::Range& elements : offload.buckets(bucket.elements / bucket.shards)) {
      all.push_back({.part = bucket.part,
                     .number = count[bucket.part]++,
                     .bucket = bucket.number,
                     .elements = elements,
                     .slot = static_cast<int>(std::ssize(all)) % offload.slots()});
    }
  }
  for (OffloadedAnatomy& one : all) {
    if (count[one.part] == 1) one.number = kNone;
  }
  return all;
}

const BucketAnatomy& bucket_of(const Anatomy& anatomy, const OffloadedAnatomy& offloaded) {
  for (const BucketAnatomy& bucket : anatomy.buckets) {
    if (bucket.part == offloaded.part && bucket.number == offloaded.bucket) return bucket;
  }
  UNREACHABLE("no bucket {} for {}", offloaded.bucket, print(offloaded.update()));
}

int slots_of(const Anatomy& anatomy) {
  int slots = 1;
  for (const OffloadedAnatomy& one : anatomy.offloaded) slots = std::max(slots, one.slot + 1);
  return slots;
}

}  // namespace

Anatomy with_offloaded_optimizer(Anatomy anatomy, const derive::OptimizerOffload& offload) {
  anatomy.offloaded = offloaded_buckets(anatomy, offload);
  const auto slots = at(slots_of(anatomy));
  std::vector<StepNodeAnatomy> added;
  for (std::size_t i = 0; i < anatomy.offloaded.size(); ++i) {
    const OffloadedAnatomy& one = anatomy.offloaded[i];
    const BucketAnatomy& bucket = bucket_of(anatomy, one);
    StepNodeAnatomy download = download_of(anatomy, bucket, one);
    StepNodeAnatomy update{.node = one.update(),
                           .lane = Lane::Host,
                           .after = {one.download(), {.piece = Piece::Clip}}};
    if (i >= slots) {
      const OffloadedAnatomy& before = anatomy.offloaded[i - slots];
      download.after.push_back(before.update());
      update.after.push_back(before.upload());
    }
    added.push_back(std::move(download));
    added.push_back(std::move(update));
    added.push_back({.node = one.upload(), .lane = Lane::CopyIn, .after = {one.update()}});
    for (StepNodeAnatomy& end : anatomy.step_end) {
      if (end.node == bucket.gather()) end.after.push_back(one.upload());
    }
  }
  std::ranges::move(added, std::back_inserter(anatomy.step_end));
  return anatomy;
}

Graph place_offloaded(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  const auto slots = at(slots_of(anatomy));
  const std::vector<OffloadedAnatomy>& all = anatomy.offloaded;
  NamedEntries order;
  std::map<Node, NamedEntry> gathers;  // at the end of the step
  const auto add = [&](const Node& node) { order.push_back({.node = node, .waits = {}}); };
  bool is_end = false;
  for (NamedEntry& entry : named_entries(graph)) {
    if (entry.node.piece == Piece::Norm && slots > 1) {
      for (std::size_t i = 0; i < std::min(slots, all.size()); ++i) add(all[i].download());
    }
    is_end |= entry.node.piece == Piece::Optimizer;
    if (is_end && entry.node.piece == Piece::Gather) {
      gathers.emplace(entry.node, std::move(entry));
    } else {
      order.push_back(std::move(entry));
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (slots == 1) add(all[i].download());
    add(all[i].update());
    add(all[i].upload());
    if (slots > 1 && i + slots < all.size()) add(all[i + slots].download());
    const Node gather = bucket_of(anatomy, all[i]).gather();
    const bool is_last = i + 1 == all.size() || bucket_of(anatomy, all[i + 1]).gather() != gather;
    const auto found = gathers.find(gather);
    if (!is_last || found == gathers.end()) continue;
    order.push_back(std::move(found->second));
    gathers.erase(found);
  }
  for (auto& [node, entry] : gathers) order.push_back(std::move(entry));
  return write(order, anatomy, micro_batches);
}

}  // namespace weft::schedule
