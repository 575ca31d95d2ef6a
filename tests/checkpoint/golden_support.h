// Folders of the checkpoint tests: the golden models, and a temporary folder per test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "weft/base/error.h"
#include "weft/checkpoint/tensors/file_tensor.h"

namespace weft::checkpoint {

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "tests/golden" / name;
}

// Text of a ConfigError; empty: none.
inline std::string complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

inline ::testing::AssertionResult says(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

inline std::string bytes_in(const TensorView& tensor) {
  std::string bytes(tensor.bytes, '\0');
  tensor.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

class CheckpointFolder : public ::testing::Test {
 protected:
  CheckpointFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(::testing::TempDir()) /
           (std::string("weft_checkpoint_") + info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }
  ~CheckpointFolder() override { std::filesystem::remove_all(dir_); }

  std::filesystem::path dir_;
};

}  // namespace weft::checkpoint
