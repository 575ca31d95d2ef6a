#include "weft/block/block.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/block/attention.h"
#include "weft/block/delta_net.h"
#include "weft/block/dispatch.h"
#include "weft/block/ends.h"
#include "weft/block/experts.h"
#include "weft/block/feed_forward.h"
#include "weft/block/latent_attention.h"

namespace weft::block {
namespace block_test {

constexpr std::int64_t kTp = 2;
const Stream kStream{.hidden = 64,
                     .sequence = 32,
                     .norm_weights = 2,
                     .has_biases = true,
                     .tp = kTp};

// Blocks with their features. token_ahead is left out: the parts that it names are those of a
// layer.
std::vector<Block> all_blocks() {
  const AttentionSharing ring{.key_ranks = 4, .keys = KeyExchange::Ring};
  const AttentionSharing heads{.head_ranks = 2, .key_ranks = 2, .keys = KeyExchange::Gather};
  const Experts moe{.count = 8,
                    .chosen = 2,
                    .local = 4,
                    .shards = 2,
                    .each = {.width = 48},
                    .latent = 32,
                    .has_balance_bias = true};
  const GroupedHeads grouped{.heads = 8,
                             .groups = 2,
                             .channels = 16,
                             .norm = config::QkNorm::Projection,
                             .has_gate = true,
                             .has_input_bias = true,
                             .has_sinks = true,
                             .window = 8};
  const GroupedHeads normed{.heads = 8, .groups = 2, .channels = 16, .norm = config::QkNorm::Head};
  const LatentHeads latent{.heads = 4,
                           .query_rank = 24,
                           .rank = 16,
                           .unturned = 16,
                           .turned = 8,
                           .value = 16};
  const RowTally rows{.experts = 8, .replicas = 4, .sharers = 2, .runs = 3, .is_global = true};
  return {attention(kStream, grouped, ring),
          attention(kStream, normed, heads),
          latent_attention(kStream, latent, heads),
          delta_net(kStream, {2, 16, 4, 16, 4}),
          dense_feed_forward(kStream, {.width = 96}),
          shared_experts(kStream, {.width = 96, .is_gated = false}, SharedGate::Learned),
          route(kStream, moe),
          experts(kStream, moe),
          embedding(kStream, {.count = 100, .padded = 128, .positions = 32}),
          head(kStream, {.count = 100, .padded = 128}),
          dispatch(kStream, {.ranks = 4, .experts = 8}),
          combine(kStream, {.ranks = 4, .experts = 8}),
          merge(kStream),
          row_counts({.ranks = 4, .experts = 8}),
          balance(rows),
          tally(rows),
          send(kStream),
          receive(kStream)};
}

bool has(const Block& block, Part part) {
  const bool is_whole = block.parts.empty() && part == Part::None;
  return is_whole || std::ranges::find(block.parts, part) != block.parts.end();
}

TEST(Block, WhatItDeclaresIsOfItsOwnParts) {
  for (const Block& block : all_blocks()) {
    const std::string name(word(block.piece));
    for (const Weight& weight : block.weights) EXPECT_TRUE(has(block, weight.part)) << weight.name;
    for (const Product& product : block.products) EXPECT_TRUE(has(block, product.part)) << name;
    for (const Pass& pass : block.passes) EXPECT_TRUE(has(block, pass.part)) << name;
    EXPECT_TRUE(!block.core || has(block, block.core->part)) << name;
    for (const Slot& slot : block.slots) EXPECT_TRUE(has(block, slot.part)) << name;
    for (const Sending& sending : block.sendings) EXPECT_TRUE(has(block, sending.part)) << name;
  }
}

TEST(Block, ProductsAreThoseOfItsMatrices) {
  for (const Block& block : all_blocks()) {
    double products = 0, matrices = 0;
    for (const Product& product : block.products) products += product.out * product.in;
    for (const Weight& weight : block.weights) {
      const bool is_product =
          weight.shape.rank() == 2 && weight.part != Part::Lookup && weight.part != Part::Gate;
      // A convolution is part of a scan.
      if (is_product && weight.part != Part::Core && weight.home == Home::Dense) {
        matrices += static_cast<double>(weight.shape.elements());
      }
      if (weight.home == Home::Expert && weight.shape.rank() == 3) {
        matrices += static_cast<double>(weight.shape.elements() / weight.shape[0]);
      }
    }
    EXPECT_EQ(products, matrices) << word(block.piece);
  }
}

TEST(Block, SplitsCoverTheirDims) {
  for (const Block& block : all_blocks()) {
    for (const Weight& weight : block.weights) {
      for (const AxisSplit& split : weight.splits) {
        std::int64_t covered = 0;
        for (const SplitBlock& run : split.blocks) covered += run.count;
        EXPECT_EQ(covered, weight.shape[split.dim]) << weight.name;
      }
    }
  }
}

TEST(Block, ASubLayerExchangesTokensOnSeveralRanksAlone) {
  Stream alone = kStream;
  alone.tp = 1;
  using enum Part;
  EXPECT_EQ(dense_feed_forward(alone, {.width = 96}).parts,
            (std::vector{Norm, Fc1, Act, Fc2, Add}));
  EXPECT_TRUE(dense_feed_forward(alone, {.width = 96}).sendings.empty());
  const Block shared = dense_feed_forward(kStream, {.width = 96});
  EXPECT_EQ(shared.parts, (std::vector{Norm, Gather, Fc1, Act, Fc2, Scatter, Add}));
  for (const Sending& sending : shared.sendings) {
    EXPECT_EQ(sending.forward.per_token, (kTp - 1) * 64 * 2);
  }
}

}  // namespace block_test
}  // namespace weft::block
