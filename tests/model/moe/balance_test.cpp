// Balancing losses of a micro-batch whose tokens several ranks share.
#include "weft/model/moe/balance.h"

#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/comm/launch.h"
#include "weft/tensor/transfer.h"

namespace weft::model {
namespace balance_test {

constexpr std::int64_t kExperts = 6, kBest = 2, kLength = 12;

// `sequences` over tp x cp ranks; sums and gradients of all their tokens.
struct Layout {
  std::int64_t tp = 1, cp = 1, sequences = 3;

  std::int64_t ranks() const { return tp * cp; }
  std::int64_t tokens() const { return sequences * kLength; }
};

struct Losses {
  double batch = 0, sequence = 0, global = 0, z = 0;
  std::vector<float> dlogits;  // of all tokens
};

config::ModelConfig config_of(config::ScoreFunction score) {
  using enum config::LoadBalancing;
  config::ModelConfig config;
  config.num_moe_experts = kExperts;
  config.moe_router_topk = kBest;
  config.moe_router_score_function = score;
  config.moe_router_load_balancing_type = {AuxLoss, SeqAuxLoss, GlobalAuxLoss};
  config.moe_aux_loss_coeff = {0.3, 0.2, 0.1};
  config.moe_z_loss_coeff = 0.05;
  return config;
}

// Global rows of a rank: of each sequence two of 2 cp pieces, for its context-parallel rank, then a
// run of these.
std::vector<std::int64_t> rows_of(const Layout& layout, std::int64_t rank) {
  const std::int64_t tp_rank = rank % layout.tp, cp_rank = rank / layout.tp;
  const std::int64_t piece = kLength / (2 * layout.cp);
  std::vector<std::int64_t> rows;
  for (std::int64_t s = 0; s < layout.sequences; ++s) {
    for (const std::int64_t which : {cp_rank, 2 * layout.cp - 1 - cp_rank}) {
      for (std::int64_t i = 0; i < piece; ++i) rows.push_back(s * kLength + which * piece + i);
    }
  }
  const std::int64_t each = layout.tokens() / layout.ranks();
  return {rows.begin() + tp_rank * each, rows.begin() + (tp_rank + 1) * each};
}

std::vector<float> logits_of(const std::vector<std::int64_t>& rows) {
  std::vector<float> logits;
  for (const std::int64_t row : rows) {
    for (std::int64_t e = 0; e < kExperts; ++e) {
      const auto place = static_cast<std::uint64_t>(row * kExperts + e);
      // Sequences prefer different experts.
      const double bias = e == row / kLength ? 1.5 : 0;
      logits.push_back(static_cast<float>(base::normal(5, place) + bias));
    }
  }
  return logits;
}

void run_rank(const Layout& layout,
              const config::ModelConfig& config,
              comm::Endpoint& endpoint,
              Losses& all,
              std::mutex& mutex) {
  devices::Workbench bench;
  Pool& pool = bench.pool;
  Stream& stream = *bench.stream;
  std::vector<int> members(static_cast<std::size_t>(layout.ranks()));
  std::iota(members.begin(), members.end(), 0);
  const auto group = endpoint.group("tp_cp", members);
  const std::vector<std::int64_t> rows = rows_of(layout, endpoint.rank());
  const Context context{
      .stream = stream,
      .pool = pool,
      .config = config,
      .sequence = kLength / layout.cp,
      .loss_scale = 0.25f,
      .share = {.ranks = layout.ranks(), .tp = layout.tp, .tp_rank = endpoint.rank() % layout.tp}};
  const Tensor logits_TE = context.activation_fp32({std::ssize(rows), kExperts});
  tensor::write<float>(stream, logits_TE, logits_of(rows));
  const Tensor dlogits_TE = context.activation_fp32(logits_TE.shape());
  kernels::zero(stream, dlogits_TE);
  const Tensor losses_4 = context.activation_fp32({4});
  kernels::zero(stream, losses_4);
  const auto loss = [&](std::int64_t i) { return losses_4.range(i, Shape{1}); };
  const Tensor global_1E(pool, DType::I64, {1, kExperts}, Tag::Activations);
  kernels::zero(stream, global_1E);
  const RouterSums sums{.batch_loss_1 = loss(0),
                        .sequence_loss_1 = loss(1),
                        .global_loss_1 = loss(2),
                        .z_loss_1 = loss(3),
                        .global_1E = global_1E};
  BalanceState state;
  balance_forward(context, state, logits_TE, {}, sums);
  balance_exchange(context, state, *group);
  balance_tally(context, state, *group);
  balance_dgrad(context, state, dlogits_TE, logits_TE, {}, sums);
  EXPECT_FALSE(state.tally_RE.defined()) << "what was counted is over";
  const std::vector<float> dlogits = tensor::read<float>(stream, dlogits_TE);
  const std::vector<float> numbers = tensor::read<float>(stream, losses_4);
  const std::lock_guard lock(mutex);
  const auto ranks = static_cast<double>(layout.ranks());
  all.batch += double(numbers[0]) / ranks;
  all.sequence += double(numbers[1]) / ranks;
  all.global += double(numbers[2]) / ranks;
  all.z += double(numbers[3]) / ranks;
  all.dlogits.resize(static_cast<std::size_t>(layout.tokens() * kExperts));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(dlogits.begin() + std::ssize(dlogits) / std::ssize(rows) * std::int64_t(i),
                kExperts,
                all.dlogits.begin() + rows[i] * kExperts);
  }
}

Losses losses_of(const Layout& layout, const config::ModelConfig& config) {
  Losses all;
  std::mutex mutex;
  comm::run_threads(
      {.world = static_cast<int>(layout.ranks()), .timeout_seconds = 10},
      [&](comm::Endpoint& endpoint) {
        comm::poison_on_error(endpoint, [&] { run_rank(layout, config, endpoint, all, mutex); });
      });
  return all;
}

TEST(SharedMicroBatch, BalancesAsOneRankDoes) {
  for (const auto score : {config::ScoreFunction::Softmax, config::ScoreFunction::Sigmoid}) {
    const config::ModelConfig config = config_of(score);
    const Losses one = losses_of({}, config);
    EXPECT_GT(one.sequence, one.batch + 0.01) << "sequences differ";
    // With three sequences of twelve tokens, two tensor-parallel ranks share the second.
    for (const Layout& layout : {Layout{.tp = 2}, {.cp = 2}, {.tp = 2, .cp = 2}, {.tp = 4}}) {
      SCOPED_TRACE(testing::Message() << "tp " << layout.tp << " cp " << layout.cp);
      const Losses many = losses_of(layout, config);
      EXPECT_NEAR(many.batch, one.batch, 1e-6 * one.batch);
      EXPECT_NEAR(many.sequence, one.sequence, 1e-6 * one.sequence);
      EXPECT_NEAR(many.global, one.global, 1e-6 * one.global);
      EXPECT_NEAR(many.z, one.z, 1e-6 * one.z);
      ASSERT_EQ(many.dlogits.size(), one.dlogits.size());
      for (std::size_t i = 0; i < one.dlogits.size(); ++i) {
        EXPECT_NEAR(many.dlogits[i], one.dlogits[i], 1e-8) << i;
      }
    }
  }
}

TEST(SharedMicroBatch, IsTalliedOnlyForLossesThatCountIt) {
  config::ModelConfig config = config_of(config::ScoreFunction::Softmax);
  config.moe_aux_loss_coeff = {0, 0, 0.1};
  const Losses one = losses_of({}, config), many = losses_of({.tp = 2}, config);
  EXPECT_EQ(many.batch, 0);
  EXPECT_EQ(many.sequence, 0);
  EXPECT_NEAR(many.global, one.global, 1e-6 * one.global);
}

}  // namespace balance_test
}  // namespace weft::model
