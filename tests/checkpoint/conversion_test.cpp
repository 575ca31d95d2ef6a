#include "weft/checkpoint/conversion.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/checkpoint/golden_support.h"
#include "tests/sanitized.h"
#include "weft/base/files/file.h"
#include "weft/checkpoint/shard.h"
#include "weft/checkpoint/state_reader.h"
#include "weft/checkpoint/step_folders.h"

namespace weft::checkpoint {
namespace conversion_test {

namespace fs = std::filesystem;

void nobody(std::uint64_t) {}

class Conversion : public CheckpointFolder {
 protected:
  StoredCheckpoint made_from(const fs::path& folder, const std::string& name) const {
    const HuggingFaceModel model(folder);
    Manifest manifest = convert_to_checkpoint(model, "config", dir_ / name, nobody);
    return {.folder = step_folder(dir_ / name, 0), .manifest = std::move(manifest)};
  }

  static void expect_same_tensors(const fs::path& a, const fs::path& b) {
    const SafetensorsFolder one(a), other(b);
    ASSERT_EQ(one.tensor_names(), other.tensor_names());
    for (const std::string& name : one.tensor_names()) {
      EXPECT_EQ(one.find(name)->dtype, other.find(name)->dtype) << name;
      EXPECT_EQ(bytes_in(*one.find(name)), bytes_in(*other.find(name))) << name;
    }
  }
};

TEST_F(Conversion, ThereAndBackIsEveryByteOfEveryTensor) {
  for (const char* name :
       {"qwen3_moe_tiny", "qwen3_moe_deep", "mixtral_tiny", "olmoe_tiny", "deepseek_v3_tiny"}) {
    SCOPED_TRACE(name);
    for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
      HuggingFaceConfig config = read_huggingface_config(golden(name));
      const HuggingFaceModel model(golden(name));
      config.model.params_dtype = precision;
      const std::string tag = std::string(name) + std::string(name_of(precision));
      write_huggingface(dir_ / (tag + ".hf"),
                        config,
                        [&](const std::string& parameter, std::int64_t begin, auto out) {
                          model.read(parameter, begin, out);
                        });
      const StoredCheckpoint made = made_from(dir_ / (tag + ".hf"), tag);
      require_weights(made, config.model, WeightsFrom::Weights);
      convert_to_huggingface(made, WeightsFrom::Weights, config, dir_ / (tag + ".back"), nobody);
      expect_same_tensors(dir_ / (tag + ".hf"), dir_ / (tag + ".back"));
      if (precision == base::DType::F32) {
        EXPECT_EQ(bytes_in(*SafetensorsFolder(dir_ / (tag + ".back")).find("model.norm.weight")),
                  bytes_in(*SafetensorsFolder(golden(name)).find("model.norm.weight")));
      }
    }
  }
}

TEST_F(Conversion, WhatIsThereIsNotReplacedAndNothingHalfStays) {
  const StoredCheckpoint made = made_from(golden("qwen3_moe_tiny"), "a");
  const HuggingFaceConfig config = read_huggingface_config(golden("qwen3_moe_tiny"));
  EXPECT_TRUE(says(complaint([&] { made_from(golden("qwen3_moe_tiny"), "a"); }), "there already"));
  struct Enough {};
  const Written stop = [](std::uint64_t bytes) {
    if (bytes > 500000) throw Enough();
  };
  EXPECT_THROW(convert_to_huggingface(made, WeightsFrom::Weights, config, dir_ / "b", stop),
               Enough);
  const HuggingFaceModel model(golden("qwen3_moe_tiny"));
  EXPECT_THROW(convert_to_checkpoint(model, "", dir_ / "c", stop), Enough);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
  // Leftovers of a killed process are taken over.
  fs::create_directories(dir_ / "b.partial");
  base::write_whole(dir_ / "b.partial" / ".unfinished", "");
  base::write_whole(dir_ / "b.partial" / "model.safetensors", "half");
  convert_to_huggingface(made, WeightsFrom::Weights, config, dir_ / "b/", nobody);
  expect_same_tensors(golden("qwen3_moe_tiny"), dir_ / "b");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 2);
}

TEST_F(Conversion, DamageAndOtherModelsAreFoundBeforeAnythingIsThere) {
  const StoredCheckpoint made = made_from(golden("qwen3_moe_tiny"), "a");
  HuggingFaceConfig config = read_huggingface_config(golden("qwen3_moe_tiny"));
  EXPECT_TRUE(says(complaint([&] { require_weights(made, config.model, WeightsFrom::Masters); }),
                   "no tensor 'optimizer.master/"));
  config::ModelConfig wider = config.model;
  wider.moe_ffn_hidden_size = 128;
  EXPECT_TRUE(says(complaint([&] { require_weights(made, wider, WeightsFrom::Weights); }),
                   "expected from its config"));
  const fs::path shard = made.folder / shard_name(0);
  std::string bytes = base::read_text(shard);
  bytes[bytes.size() / 2] ^= 1;
  base::write_whole(shard, bytes);
  EXPECT_TRUE(says(complaint([&] {
                     convert_to_huggingface(made, WeightsFrom::Weights, config, dir_ / "b", nobody);
                   }),
                   "damaged"));
  EXPECT_FALSE(fs::exists(dir_ / "b") || fs::exists(dir_ / "b.partial"));
}

std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) return std::stoull(line.substr(7)) << 10;
  }
  return 0;
}

// Runs `work` in a child process with `more_bytes` of additional memory.
template <typename Work>
int code_within(std::uint64_t more_bytes, const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlim_t most = data_bytes() + more_bytes;
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(2);
    try {
      work();
    } catch (const std::bad_alloc&) {
      ::_exit(3);
    } catch (...) {
      ::_exit(4);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Model of 97 MiB with a parameter of 64 MiB.
TEST_F(Conversion, HoldsAFewBuffersWhateverTheModel) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is not bounded";
  HuggingFaceConfig config = read_huggingface_config(golden("qwen3_moe_tiny"));
  config.model.num_layers = 1;
  config.model.hidden_size = 512;
  config.model.num_moe_experts = 32;
  config.model.moe_ffn_hidden_size = 512;
  write_huggingface(dir_ / "hf", config, [](const std::string&, std::int64_t, auto out) {
    std::ranges::fill(out, 1.0f);
  });
  ASSERT_GT(huggingface_bytes(config), std::uint64_t{96} << 20);
  constexpr std::uint64_t kMost = std::uint64_t{48} << 20;
  EXPECT_EQ(code_within(kMost, [&] { made_from(dir_ / "hf", "made"); }), 0);
  EXPECT_EQ(code_within(
                kMost,
                [&] {
                  const fs::path step = step_folder(dir_ / "made", 0);
                  const StoredCheckpoint made{.folder = step, .manifest = read_manifest(step)};
                  convert_to_huggingface(made, WeightsFrom::Weights, config, dir_ / "back", nobody);
                }),
            0);
  EXPECT_TRUE(fs::exists(dir_ / "back" / "config.json"));
  EXPECT_EQ(code_within(kMost, [] { std::vector<float>(16 << 20, 1.0f); }), 3);
}

}  // namespace conversion_test
}  // namespace weft::checkpoint
