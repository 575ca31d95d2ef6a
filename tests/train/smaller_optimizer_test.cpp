// Optimizer state in fewer bits: equal bits for any step layout, close to fp32, and checkpoints of
// every form for every other.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "tests/sanitized.h"
#include "tests/train/saved_state_support.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/conversion.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/tensor/narrow_numbers.h"
#include "weft/train/weights.h"

namespace weft::train {
namespace smaller_optimizer_test {

namespace fs = std::filesystem;
using base::DType;
using config::Config;
using tensor::DType;

enum class Masters { Whole, Halves, Remainders };

Config aware(Config config, DType moments, Masters masters) {
  config.model.params_dtype = DType::BF16;
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  config.optimizer.use_precision_aware_optimizer = true;
  config.optimizer.exp_avg_dtype = config.optimizer.exp_avg_sq_dtype = moments;
  config.optimizer.store_param_remainders = masters == Masters::Remainders;
  if (masters == Masters::Halves) {
    config.optimizer.main_params_dtype = DType::F16;
  }
  return config;
}

Config in_buckets(Config config, std::int64_t bucket_size) {
  config.comm_overlap.overlap_grad_reduce = config.ddp.overlap_grad_reduce = true;
  config.comm_overlap.overlap_param_gather = config.ddp.overlap_param_gather =
      config.optimizer.overlap_param_gather = true;
  config.comm_overlap.bucket_size = config.ddp.bucket_size = bucket_size;
  return config;
}

Config without_overlap(Config config) {
  config.comm_overlap.overlap_grad_reduce = config.comm_overlap.overlap_param_gather = false;
  return config;
}

TEST(SmallerOptimizer, HasTheSameBitsWhateverTheBucketsAndTheirTime) {
  for (const DType moments : {DType::BF16, DType::F16}) {
    SCOPED_TRACE(name_of(moments));
    const Config config =
        aware(with_layout(small_config(), {.world = 4, .ep = 2}), moments, Masters::Remainders);
    const Outcome expected = train_some(without_overlap(config), 3);
    for (const std::int64_t bucket_size : {700, 100'000}) {
      expect_same_bits(train_some(in_buckets(config, bucket_size), 3), expected);
    }
    Config whole = without_overlap(config);  // forward of experts beside the backward
    whole.comm_overlap.overlap_moe_expert_parallel_comm = true;
    whole.comm_overlap.delay_wgrad_compute = true;
    expect_same_bits(train_some(whole, 3), expected);
  }
}

Config with_bf16_gradients(Config config) {
  config = aware(config, DType::F32, Masters::Remainders);
  config.optimizer.main_grads_dtype = DType::BF16;
  return config;
}

// Sums over micro-batches round in micro-batch order, which no overlap changes.
TEST(SmallerGradients, HaveTheSameBitsWhateverTheBucketsAndTheirTime) {
  const Config config = with_bf16_gradients(with_layout(small_config(), {.world = 4, .ep = 2}));
  const Outcome expected = train_some(without_overlap(config), 3);
  expect_same_bits(train_some(in_buckets(config, 700), 3), expected);
  Config beside = without_overlap(config);
  beside.comm_overlap.overlap_moe_expert_parallel_comm = true;
  beside.comm_overlap.delay_wgrad_compute = true;
  expect_same_bits(train_some(beside, 3), expected);
  Config there = without_overlap(config);
  there.optimizer.optimizer_cpu_offload = true;
  there.optimizer.optimizer_offload_fraction = 0.5;
  there.optimizer.store_param_remainders = false;
  Config here = without_overlap(config);
  here.optimizer.store_param_remainders = false;
  expect_same_bits(train_some(there, 3), train_some(here, 3));
}

// Half of the bytes, also with tied embeddings, whose two gradients are added.
TEST(SmallerGradients, TakeHalfOfTheBytes) {
  for (const bool is_tied : {false, true}) {
    Config config = with_layout(small_config(), {.world = 2});
    config.model.share_embeddings_and_output_weights = is_tied;
    std::array<std::int64_t, 2> bytes{};
    for (const bool is_small : {false, true}) {
      Config run = with_bf16_gradients(config);
      if (!is_small) run.optimizer.main_grads_dtype = DType::F32;
      on_ranks(run, [&](Engine& engine) {
        if (engine.rank() != 0) return;
        bytes[is_small ? 1 : 0] =
            static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Gradients).bytes);
      });
    }
    EXPECT_EQ(2 * bytes[1], bytes[0]);
    EXPECT_GT(bytes[1], 0);
  }
}

// Compares the losses of a run with 16-bit state with those of fp32.
void expect_near(const Config& small, const Config& plain, double tolerance) {
  constexpr std::int64_t kLength = 20;
  const Outcome found = train_some(small, kLength);
  const Outcome& expected = trained_once(plain, kLength);
  if (!kSanitized) {  // sanitizer runs are shorter
    EXPECT_LT(expected.losses.back(), 0.9 * expected.losses.front()) << "too little was learnt";
  }
  for (std::size_t i = 0; i < found.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance * expected.losses[i]) << i;
  }
}

TEST(SmallerOptimizer, LearnsAsOneInFp32Does) {
  Config plain = with_layout(small_config(), {.world = 2});
  plain = aware(plain, DType::F32, Masters::Whole);
  plain.optimizer.use_precision_aware_optimizer = false;
  expect_near(aware(plain, DType::F32, Masters::Remainders), plain, 1e-2);
  expect_near(aware(plain, DType::BF16, Masters::Remainders), plain, 2e-2);
  expect_near(aware(plain, DType::F16, Masters::Remainders), plain, 2e-2);
  expect_near(aware(plain, DType::F32, Masters::Halves), plain, 2e-2);
  expect_near(with_bf16_gradients(plain), plain, 2e-2);
}

// State of a run, converted to fp32, by the name of the global tensor.
using Values = std::map<std::string, std::vector<float>>;

template <typename T>
std::vector<T> numbers_of(const std::vector<std::byte>& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

std::vector<float> values_of(const std::string& name,
                             DType dtype,
                             const std::vector<std::byte>& bytes) {
  std::vector<float> values;
  const auto add = [&]<typename T>(std::vector<T> numbers, auto&& value) {
    for (const T& number : numbers) values.push_back(value(number));
  };
  const auto as_it_is = [](auto number) { return static_cast<float>(number); };
  if (dtype == DType::F32) return numbers_of<float>(bytes);
  if (dtype == DType::I16) add(numbers_of<std::int16_t>(bytes), as_it_is);
  if (dtype == DType::BF16) add(numbers_of<tensor::BFloat16>(bytes), as_it_is);
  EXPECT_TRUE(dtype == DType::F16 || !values.empty()) << name;
  if (dtype != DType::F16) return values;
  auto of_half = tensor::moment1_of_half;
  if (name.starts_with("optimizer.moment2/")) of_half = tensor::moment2_of_half;
  if (name.starts_with("optimizer.master/")) of_half = tensor::master_of_half;
  add(numbers_of<tensor::Float16>(bytes), of_half);
  return values;
}

// Joins remainders and their weights to masters.
void join_masters(Values& all) {
  const std::string kind = "optimizer.remainder/";
  Values masters;
  for (const auto& [name, remainders] : all) {
    if (!name.starts_with(kind)) continue;
    const std::string parameter = name.substr(kind.size());
    std::vector<float>& joined = masters["optimizer.master/" + parameter];
    const std::vector<float>& weights = all.at("weights/" + parameter);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      joined.push_back(tensor::joined_float(tensor::BFloat16(weights[i]).bits,
                                            static_cast<std::int16_t>(remainders[i])));
    }
  }
  std::erase_if(all, [&](const auto& each) { return each.first.starts_with(kind); });
  all.merge(masters);
}

class StateForms : public ::testing::Test {
 protected:
  StateForms() : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_sf_{}", ::getpid())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~StateForms() override { fs::remove_all(folder_); }

  // Continues from a saved state, if any, to the end of step `until`, saves, and returns the state.
  Values run(Config config, std::int64_t until) {
    config.checkpoint.save = config.checkpoint.load = folder_.string();
    const std::optional<Resumption> from = find_resumption(config);
    note_ = from ? from->note : "";
    Global bytes;
    std::map<std::string, DType> dtypes;
    std::mutex mutex;
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      if (from) load_checkpoint(engine, progress, *from);
      tensor::Stream& stream = engine.lanes()[schedule::Lane::Compute];
      engine.groups().world->barrier(stream);  // others may read what this rank will replace
      stream.synchronize();
      while (progress.step() < until) {
        const Batch batch = batch_of(engine, progress.step());
        train_step(engine,
                   {.batch = batch, .step = progress.step(), .learning_rate = 1e-2},
                   exec::Tracing::Off);
        progress.advance(config.train.global_batch_size);
      }
      put(engine, progress, bytes, mutex);
      EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
      const std::lock_guard lock(mutex);
      for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
        dtypes[entry.name] = entry.tensor.dtype();
      }
    });
    Values all;
    for (const auto& [name, values] : bytes) {
      if (dtypes.at(name) != DType::I64) all[name] = values_of(name, dtypes.at(name), values);
    }
    join_masters(all);
    return all;
  }

  void forget() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  fs::path folder_;
  std::string note_;
};

// From one layout to others, which cut the state differently, in every form.
TEST_F(StateForms, AreReadUnderOtherLayoutsToTheBit) {
  for (const DType moments : {DType::BF16, DType::F16}) {
    forget();
    const Masters masters = moments == DType::BF16 ? Masters::Halves : Masters::Remainders;
    const auto config = [&](const LayoutCase& layout) {
      return aware(with_layout(deep_config(), layout), moments, masters);
    };
    const Values saved = run(in_buckets(config({.world = 2}), 700), 2);
    for (const LayoutCase& layout : {LayoutCase{},
                                     LayoutCase{.world = 4, .ep = 2, .tp = 2},
                                     LayoutCase{.world = 4, .pp = 2, .vpp = 2}}) {
      SCOPED_TRACE(name_of(layout));
      EXPECT_EQ(run(config(layout), 2), saved);
      EXPECT_EQ(note_.find("converted"), note_.npos) << note_;
    }
  }
}

TEST_F(StateForms, ARunThatWasLeftGoesOnToTheBit) {
  const Config config =
      aware(with_layout(small_config(), {.world = 4, .ep = 2}), DType::F16, Masters::Remainders);
  const Values whole = run(config, 4);
  forget();
  run(config, 2);
  EXPECT_EQ(run(config, 4), whole);
}

// fp32 represents all other forms; master weights are exact in either form.
TEST_F(StateForms, GoToFp32AndBackToTheBit) {
  const Config base = with_layout(small_config(), {.world = 2});
  for (const DType moments : {DType::BF16, DType::F16}) {
    SCOPED_TRACE(name_of(moments));
    forget();
    const Config small = aware(base, moments, Masters::Remainders);
    Config plain = aware(base, DType::F32, Masters::Whole);
    plain.optimizer.use_precision_aware_optimizer = false;
    const Values first = run(small, 2);
    const Values wide = run(plain, 2);
    EXPECT_NE(note_.find("master weights from 16-bit remainders to fp32"), note_.npos) << note_;
    EXPECT_NE(note_.find("to fp32, second moments"), note_.npos) << note_;
    for (const auto& [name, values] : first) {
      if (name.starts_with("weights/")) continue;
      EXPECT_EQ(wide.at(name), values) << name;
    }
    EXPECT_EQ(run(small, 2), first);
    EXPECT_NE(note_.find("master weights from fp32 to 16-bit remainders"), note_.npos) << note_;
  }
}

// Weights are rounded by the run's form, on every rank with them.
TEST_F(StateForms, WeightsAreThoseOfTheNewForm) {
  const Config base = with_layout(small_config(), {.world = 2});
  const Values whole = run(aware(base, DType::F32, Masters::Whole), 3);
  const Values halves = run(aware(base, DType::F32, Masters::Remainders), 3);
  for (const auto& [name, masters] : whole) {
    if (!name.starts_with("optimizer.master/")) continue;
    const std::string parameter = name.substr(name.find('/') + 1);
    EXPECT_EQ(halves.at(name), masters) << name;
    for (std::size_t i = 0; i < masters.size(); ++i) {
      const tensor::BFloat16 weight(halves.at("weights/" + parameter)[i]);
      ASSERT_EQ(weight.bits, tensor::split_float(masters[i]).upper) << name;
    }
  }
}

// fp16 masters are rounded once from fp32 ones, and weights from them; fp32 then represents them.
TEST_F(StateForms, MastersGoToFp16) {
  const Config base = with_layout(small_config(), {.world = 2});
  const Config half = aware(base, DType::F32, Masters::Halves);
  const Values whole = run(aware(base, DType::F32, Masters::Whole), 3);
  const Values halves = run(half, 3);
  EXPECT_NE(note_.find("master weights from fp32 to fp16"), note_.npos) << note_;
  for (const auto& [name, masters] : whole) {
    if (!name.starts_with("optimizer.master/")) continue;
    const std::string parameter = name.substr(name.find('/') + 1);
    for (std::size_t i = 0; i < masters.size(); ++i) {
      const float kept = tensor::master_of_half(tensor::half_of_master(masters[i]));
      ASSERT_EQ(halves.at(name)[i], kept) << name;
      ASSERT_EQ(halves.at("weights/" + parameter)[i], float(tensor::BFloat16(kept))) << name;
    }
  }
  const Values wide = run(aware(base, DType::F32, Masters::Whole), 3);
  EXPECT_EQ(wide, halves);
  const Values on = run(half, 5);
  forget();
  run(aware(base, DType::F32, Masters::Whole), 3);
  EXPECT_EQ(run(half, 5), on);
}

TEST_F(StateForms, AreTheSameMastersForHuggingFace) {
  const Config start = with_layout(small_config(), {.world = 2});
  const auto converted = [&](Masters masters, const char* out) {
    run(aware(start, DType::BF16, masters), 1);
    const fs::path step = checkpoint::step_folder(folder_, 1);
    const checkpoint::StoredCheckpoint from{.folder = step,
                                            .manifest = checkpoint::read_manifest(step)};
    Config config = start;
    config.model.params_dtype = DType::F32;
    checkpoint::require_weights(from, config.model, checkpoint::WeightsFrom::Masters);
    checkpoint::convert_to_huggingface(from,
                                       checkpoint::WeightsFrom::Masters,
                                       huggingface_config_for(config.model),
                                       folder_ / out,
                                       [](std::uint64_t) {});
    return base::read_text(folder_ / out / "model.safetensors");
  };
  const std::string whole = converted(Masters::Whole, "whole");
  EXPECT_EQ(converted(Masters::Remainders, "remainders"), whole);
}

// Numbers that a narrower form cannot represent are rounded once.
TEST_F(StateForms, AreRoundedToFewerBits) {
  const Config base = with_layout(small_config(), {.world = 2});
  const Values wide = run(aware(base, DType::F32, Masters::Remainders), 2);
  const Values narrow = run(aware(base, DType::BF16, Masters::Remainders), 2);
  EXPECT_NE(note_.find("first moments from fp32 to bf16"), note_.npos) << note_;
  int rounded = 0;
  for (const auto& [name, values] : wide) {
    if (!name.starts_with("optimizer.moment")) continue;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float expected = static_cast<float>(tensor::BFloat16(values[i]));
      ASSERT_EQ(narrow.at(name)[i], expected) << name;
      rounded += expected != values[i] ? 1 : 0;
    }
  }
  EXPECT_GT(rounded, 1000);
}

}  // namespace smaller_optimizer_test
}  // namespace weft::train
