// Several instances of the distributed optimizer: state is sharded within an instance and
// replicated between them. The run equals that of one rank.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <numeric>

#include "tests/train/saved_state_support.h"
#include "tests/train/train_support.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/derive/memory/memory.h"
#include "weft/derive/parameters.h"

namespace weft::train {
namespace instances_test {

namespace fs = std::filesystem;
using comm::Operation;
using config::Config;
using model::Home;

constexpr std::array kTrained{Home::Dense, Home::Expert};

enum class Overlap { None, Reduce, All };

Config with_instances(Config config, std::int64_t instances, Overlap overlap) {
  const bool reduces = overlap != Overlap::None, gathers = overlap == Overlap::All;
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  config.ddp.num_distributed_optimizer_instances = instances;
  config.comm_overlap.overlap_grad_reduce = config.ddp.overlap_grad_reduce = reduces;
  config.comm_overlap.overlap_param_gather = config.ddp.overlap_param_gather =
      config.optimizer.overlap_param_gather = gathers;
  if (reduces) config.comm_overlap.bucket_size = config.ddp.bucket_size = 3000;
  return config;
}

struct Case {
  std::string name;
  LayoutCase layout;
  int cp = 1;
  std::int64_t instances = 2;
};

Config model_of(const Case& value) {
  Config config = value.layout.pp > 1 ? deep_config() : small_config();
  config.model.share_embeddings_and_output_weights = true;
  config.model.moe_aux_loss_coeff = {0.02};
  return config;
}

Config config_of(const Case& value) {
  Config config = with_layout(model_of(value), value.layout);
  config.model.context_parallel_size = value.cp;
  return config;
}

std::vector<Case> cases() {
  return {{.name = "Dp4In2", .layout = {.world = 4}},
          {.name = "Dp4In4", .layout = {.world = 4}, .instances = 4},
          {.name = "Dp8In2", .layout = {.world = 8}},
          {.name = "Dp4Ep2In2", .layout = {.world = 4, .ep = 2}},
          {.name = "Dp8Ep2In2", .layout = {.world = 8, .ep = 2}},
          {.name = "Cp2Dp2In2", .layout = {.world = 4}, .cp = 2},
          {.name = "Cp2Dp4In4", .layout = {.world = 8}, .cp = 2, .instances = 4},
          {.name = "Tp2Dp4In2", .layout = {.world = 8, .tp = 2}},
          {.name = "Pp2Dp4In2", .layout = {.world = 8, .pp = 2}}};
}

class Instances : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         Instances,
                         ::testing::ValuesIn(third_or_all(cases(), 1)),
                         [](const auto& test) { return test.param.name; });

TEST_P(Instances, EqualTheOneRankRunWithTheSameBitsWheneverTheyExchange) {
  const std::int64_t steps = few_or_many(4, 6);
  const Outcome& expected = trained_once(model_of(GetParam()), steps);
  const Config many = config_of(GetParam());
  const std::int64_t instances = GetParam().instances;
  const Outcome plain = train_some(with_instances(many, instances, Overlap::None), steps);
  expect_equal_to_rounding(plain, expected);
  for (const Overlap overlap : {Overlap::Reduce, Overlap::All}) {
    expect_same_bits(train_some(with_instances(many, instances, overlap), steps), plain);
  }
}

// One instance per rank: whole sums and whole state on each.
TEST(InstancesOfOneRank, HaveTheBitsOfWholeOptimizers) {
  const Config plain = config_of({.name = "", .layout = {.world = 4}});
  expect_same_bits(train_some(with_instances(plain, 4, Overlap::All), 3), train_some(plain, 3));
}

TEST(InstanceSums, AreDividedWhereTheCollectiveAverages) {
  Config config = with_instances(config_of({.name = "", .layout = {.world = 4}}), 2, Overlap::All);
  const Outcome summed = train_some(config, 4);
  config.ddp.average_in_collective = true;
  expect_equal_to_rounding(train_some(config, 4), summed);
}

TEST(InstanceSums, OfNarrowGradientsAreNearTheWideOnes) {
  for (const LayoutCase& layout : {LayoutCase{.world = 4}, LayoutCase{.world = 8, .ep = 2}}) {
    Config config = config_of({.name = "", .layout = layout});
    config.model.params_dtype = base::DType::BF16;
    const Outcome wide = train_some(with_instances(config, 2, Overlap::None), 3);
    config.ddp.grad_reduce_in_fp32 = false;
    const Outcome found = train_some(with_instances(config, 2, Overlap::None), 3);
    EXPECT_NE(found.gradient_norms[0], wide.gradient_norms[0]) << "nothing was rounded";
    EXPECT_NEAR(found.gradient_norms[0], wide.gradient_norms[0], 1e-3 * wide.gradient_norms[0]);
    expect_same_bits(train_some(with_instances(config, 2, Overlap::All), 3), found);
  }
}

TEST(InstanceGroups, AreNeighboursAndThoseInTheSamePlace) {
  const Config config =
      with_instances(config_of({.name = "", .layout = {.world = 8, .ep = 2}}), 2, Overlap::None);
  on_ranks(config, [](Engine& engine) {
    const Groups& groups = engine.groups();
    const int rank = engine.rank();
    const int first = rank / 4 * 4, edge = rank / 4 * 4 + rank % 2;
    EXPECT_EQ(groups.instance(Home::Dense).members(),
              (std::vector{first, first + 1, first + 2, first + 3}));
    EXPECT_EQ(groups.shard_copies(Home::Dense)->members(), (std::vector{rank % 4, rank % 4 + 4}));
    EXPECT_EQ(groups.instance(Home::Expert).members(), (std::vector{edge, edge + 2}));
    EXPECT_EQ(groups.shard_copies(Home::Expert)->members(), (std::vector{rank % 4, rank % 4 + 4}));
  });
}

// One instance needs no group; nor does one per rank, which has no state to share.
TEST(InstanceGroups, AreMadeOnlyWhereSeveralRanksShareAndOthersHaveCopies) {
  const Config config = config_of({.name = "", .layout = {.world = 4}});
  for (const std::int64_t instances : {1, 4}) {
    on_ranks(with_instances(config, instances, Overlap::None), [](Engine& engine) {
      for (const Home home : kTrained) {
        EXPECT_EQ(&engine.groups().instance(home), &engine.groups().reduction(home));
        EXPECT_EQ(engine.groups().shard_copies(home), nullptr);
      }
    });
  }
}

// Bytes sent by a step. Within an instance: all of a bucket except the own part, and the own part
// back to all others. Between two instances: half of a shard, and the sum of the other half.
TEST(InstanceBytes, ABucketTravelsInsideAnInstanceAndAShardBetweenThem) {
  Config config = config_of({.name = "", .layout = {.world = 8, .ep = 2}});
  for (const bool narrow : {false, true}) {
    config.model.params_dtype = narrow ? base::DType::BF16 : base::DType::F32;
    config.ddp.grad_reduce_in_fp32 = !narrow;
    const std::int64_t width = narrow ? 2 : 4;
    on_ranks(with_instances(config, 2, Overlap::All), [&](Engine& engine) {
      train_step(engine, {.batch = batch_of(engine, 0)}, exec::Tracing::Off);
      const Groups& groups = engine.groups();
      for (const Home home : kTrained) {
        const derive::BufferLayout& layout = engine.parameters().buffer(home).layout;
        const std::int64_t buckets = std::ssize(layout.buckets), shards = layout.shards;
        EXPECT_EQ(shards, home == Home::Dense ? 4 : 2);
        const auto expect_sent =
            [&](const comm::Communicator& group, Operation operation, std::int64_t elements) {
              const comm::Traffic traffic = group.traffic().at(operation);
              EXPECT_EQ(traffic.calls, buckets) << group.name();
              EXPECT_EQ(traffic.bytes_sent, width * elements) << group.name();
            };
        const std::int64_t others = layout.elements / shards * (shards - 1);
        expect_sent(groups.instance(home), Operation::ReduceScatter, others);
        expect_sent(groups.instance(home), Operation::AllGather, others);
        expect_sent(*groups.shard_copies(home), Operation::AllReduce, layout.elements / shards);
        EXPECT_FALSE(groups.reduction(home).traffic().contains(Operation::ReduceScatter));
        EXPECT_FALSE(groups.reduction(home).traffic().contains(Operation::AllReduce));
      }
    });
  }
}

// 6 + 12 / d bytes per parameter in bf16, with d ranks per instance.
TEST(InstanceBytes, StateIsSharedInsideAnInstance) {
  Config config = config_of({.name = "", .layout = {.world = 8, .ep = 2}});
  config.model.params_dtype = base::DType::BF16;
  for (const std::int64_t instances : {1, 2, 4}) {
    const Config many = with_instances(config, instances, Overlap::None);
    on_ranks(many, [&](Engine& engine) {
      std::int64_t shared = 0;
      for (const Home home : kTrained) {
        const derive::BufferLayout& layout = engine.parameters().buffer(home).layout;
        EXPECT_EQ(layout.shards, (home == Home::Dense ? 8 : 4) / instances);
        if (layout.shards > 1) {
          EXPECT_EQ(layout.elements % std::lcm<std::int64_t>(layout.shards, 128), 0);
        }
        shared += layout.elements / layout.shards;
      }
      const auto found = static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Optimizer).bytes);
      EXPECT_EQ(found, 12 * shared);
      // Formula without padding.
      const std::int64_t derived =
          derive::state_bytes(engine.config(), derive::rank_parameters(engine.config()).front())
              .optimizer;
      EXPECT_LE(derived, found);
      EXPECT_GT(derived, found * 9 / 10);
    });
  }
}

class InstanceCheckpoints : public ::testing::Test {
 protected:
  InstanceCheckpoints()
      : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_instances_{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~InstanceCheckpoints() override { fs::remove_all(folder_); }

  Config config(std::int64_t instances) const {
    Config config = config_of({.name = "", .layout = {.world = 4, .ep = 2}});
    config.model.params_dtype = base::DType::BF16;
    config.checkpoint.save = config.checkpoint.load = folder_.string();
    return with_instances(config, instances, Overlap::All);
  }

  const fs::path folder_;
};

TEST_F(InstanceCheckpoints, OfOneNumberAreReadUnderAnother) {
  for (const auto& [from, to] : {std::pair{1, 2}, {2, 1}, {2, 2}}) {
    SCOPED_TRACE(fmt::format("from {} to {}", from, to));
    const Global state = saved(config(from), 2);
    EXPECT_EQ(loaded(config(to)), state);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

// Files are disjoint, and together contain every element of the state once.
TEST_F(InstanceCheckpoints, HaveNothingTwice) {
  saved(config(2), 1);
  const checkpoint::Manifest manifest =
      checkpoint::read_manifest(checkpoint::step_folder(folder_, 1));
  ASSERT_EQ(manifest.files.size(), 4u);
  std::uint64_t written = 0, held = 0;
  for (const checkpoint::StoredFile& file : manifest.files) {
    written += file.bytes - file.header_bytes;
  }
  for (const auto& [name, state] : manifest.states) {
    held +=
        static_cast<std::uint64_t>(state.shape.elements()) * checkpoint::element_bytes(state.dtype);
  }
  EXPECT_EQ(written, held);
}

}  // namespace instances_test
}  // namespace weft::train
