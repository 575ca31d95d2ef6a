#include "weft/checkpoint/tensors/bf16_reference.h"

#include <map>

#include "tests/checkpoint/golden_support.h"
#include "weft/base/text.h"
#include "weft/checkpoint/huggingface/huggingface_tensors.h"

namespace weft::checkpoint {
namespace bf16_reference_test {

using base::text;

// Tensors of a bf16.safetensors of the Mixtral model: 8 sequences of 24 tokens, each with 2 of 4
// experts in 2 layers.
class Bf16File : public CheckpointFolder {
 protected:
  Bf16File() {
    for (const int layer : {0, 1}) {
      std::vector<std::int32_t>& experts = experts_[text("experts.{}", layer)];
      for (int i = 0; i < 8 * 24; ++i) {
        experts.insert(experts.end(), {i % 3, i % 3 + 1});
      }
    }
    for (const char* name : {"logits", "loss"}) errors_[text("error.{}", name)] = 0.01;
    for (const HuggingFaceTensor& tensor :
         huggingface_tensors(model_.config(), model_.family(), ExpertNames::Stacked)) {
      errors_["error.grad." + tensor.name] = 0.02;
    }
  }

  void write(Shape shape = {8, 24, 2}) const {
    std::vector<NewTensor> tensors;
    for (const auto& [name, values] : experts_) tensors.push_back({name, FileDtype::I32, shape});
    for (const auto& [name, value] : errors_) tensors.push_back({name, FileDtype::F64, {1}});
    write_safetensors(dir_ / "bf16.safetensors",
                      tensors,
                      [&](const NewTensor& tensor, const base::Append& append) {
                        const auto found = experts_.find(tensor.name);
                        append(found != experts_.end()
                                   ? bytes_of_all<std::int32_t>(found->second)
                                   : bytes_of_all<double>({&errors_.at(tensor.name), 1}));
                      });
  }

  Bf16Reference read() const { return {dir_, model_, run_}; }
  std::string complaint_of_reading() const {
    return complaint([&] { read(); });
  }

  std::map<std::string, std::vector<std::int32_t>> experts_;
  std::map<std::string, double> errors_;

 private:
  template <typename T>
  static std::string_view bytes_of_all(std::span<const T> values) {
    return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
  }

  const HuggingFaceModel model_{golden("mixtral_tiny")};
  const ReferenceRun run_{golden("mixtral_tiny"), model_.huggingface_config()};
};

TEST_F(Bf16File, ChoicesAreReadBySequenceAndErrorsByName) {
  experts_["experts.1"][std::size_t(3 * 24 * 2 + 1)] = 3;  // second expert of a first token
  write();
  const Bf16Reference bf16 = read();
  EXPECT_EQ(bf16.error("logits"), 0.01);
  EXPECT_EQ(bf16.error("grad.model.norm.weight"), 0.02);
  const std::vector<std::int32_t> experts = bf16.experts(1, 3, 2);
  ASSERT_EQ(experts.size(), 2u * 24 * 2);
  EXPECT_EQ(std::vector(experts.begin(), experts.begin() + 4),
            (std::vector<std::int32_t>{0, 3, 1, 2}));
}

TEST_F(Bf16File, AMissingFileSaysHowToMakeIt) {
  const std::string what = complaint_of_reading();
  EXPECT_TRUE(says(what, (dir_ / "bf16.safetensors").string()));
  EXPECT_TRUE(says(what, text("tools/make_reference.py {} --bf16", dir_.string())));
}

TEST_F(Bf16File, ExpertsThatNoTokenCanHaveAreRejected) {
  experts_["experts.1"][7] = 4;
  write();
  EXPECT_TRUE(says(complaint_of_reading(), "'experts.1': element 7 is expert 4"));
  experts_["experts.1"][7] = experts_["experts.1"][6];
  write();
  EXPECT_TRUE(says(complaint_of_reading(), "'experts.1': element 7"));
  experts_["experts.1"][6] = -1;
  write();
  EXPECT_TRUE(says(complaint_of_reading(), "element 6 is expert -1"));
}

TEST_F(Bf16File, OfAnotherBatchIsRejected) {
  write({8 * 24, 1, 2});
  EXPECT_TRUE(says(complaint_of_reading(), "'experts.0' has shape"));
}

TEST_F(Bf16File, ErrorsAreNumbersAndOfEveryTensor) {
  errors_["error.loss"] = -1;
  write();
  EXPECT_TRUE(says(complaint_of_reading(), "'error.loss' is -1"));
  errors_["error.loss"] = std::nan("");
  write();
  EXPECT_TRUE(says(complaint_of_reading(), "'error.loss' is nan"));
  errors_.erase("error.loss");
  write();
  EXPECT_TRUE(says(complaint_of_reading(), "tensor 'error.loss' is missing"));
}

}  // namespace bf16_reference_test
}  // namespace weft::checkpoint
