#include "weft/schedule/buckets.h"

#include <algorithm>

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::schedule {
namespace {

using base::at;
using derive::Home;
using derive::ParameterSpec;

constexpr std::string_view kTable = "embedding.weight";

// Pieces that write a parameter's gradient, and read its weights.
std::vector<PieceAt> users_of(const ParameterSpec& spec,
                              const derive::Holding& holding,
                              const config::ModelConfig& model) {
  if (spec.layer >= 0) return {{.layer = spec.layer, .piece = spec.piece}};
  std::vector<PieceAt> users;
  const bool of_embed = spec.piece == Piece::Embed;
  if (of_embed && holding.embedding) users.push_back({.piece = Piece::Embed});
  const bool is_tied = spec.name == kTable && model.share_embeddings_and_output_weights;
  const bool of_head = spec.piece == Piece::Head || is_tied;
  if (of_head && holding.head) users.push_back({.piece = Piece::Head});
  return users;
}

}  // namespace

std::vector<BucketAnatomy> buckets_of(const config::ModelConfig& model,
                                      const derive::BufferScheme& buffers,
                                      const derive::Holding& holding) {
  const std::vector<ParameterSpec> all = derive::list_parameters(model, holding, {});
  std::vector<BucketAnatomy> buckets;
  for (const Home home : {Home::Expert, Home::Dense}) {
    std::vector<const ParameterSpec*> own;
    for (const ParameterSpec& spec : all) {
      if (spec.home == home) own.push_back(&spec);
    }
    const derive::BufferLayout layout = derive::lay_out(model, holding, own, buffers.of(home));
    const int count = static_cast<int>(layout.buckets.size());
    for (int i = 0; i < count; ++i) {
      const derive::Bucket& bucket = layout.buckets[at(i)];
      BucketAnatomy anatomy{.part = home == Home::Dense ? Part::Dense : Part::Expert,
                            .number = count == 1 ? kNone : i,
                            .chunk = bucket.chunk,
                            .elements = bucket.elements.count,
                            .shards = layout.shards,
                            .pieces = {}};
      for (const int item : bucket.items) {
        const ParameterSpec& spec = *own[at(item)];
        anatomy.has_table |= spec.name == kTable;
        anatomy.items.push_back(
            {.elements = {.begin = layout.offsets[at(item)] - bucket.elements.begin,
                          .count = spec.room},
             .users = users_of(spec, holding, model)});
        for (const PieceAt& user : anatomy.items.back().users) {
          if (std::ranges::find(anatomy.pieces, user) == anatomy.pieces.end()) {
            anatomy.pieces.push_back(user);
          }
        }
      }
      buckets.push_back(std::move(anatomy));
    }
  }
  return buckets;
}

}  // namespace weft::schedule
