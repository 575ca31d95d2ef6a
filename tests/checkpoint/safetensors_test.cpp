#include "weft/checkpoint/tensors/safetensors.h"

#include <cstring>

#include "tests/checkpoint/golden_support.h"

namespace weft::checkpoint {
namespace safetensors_test {

// File with a header text and `data` zero bytes.
std::string file_of(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(data, '\0');
}

std::string rejection(const std::string& file) {
  return complaint([&] {
    parse_header(bytes_of(std::as_bytes(std::span(file))), file.size(), "x.safetensors");
  });
}

std::string rejection(const std::string& header, std::size_t data) {
  return rejection(file_of(header, data));
}

const std::string kSmall =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]}})";

TEST(SafetensorsHeader, TensorsAreFound) {
  const std::string file = file_of(kSmall, 10);
  const StoredTensors tensors =
      parse_header(bytes_of(std::as_bytes(std::span(file))), file.size(), "x");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("a").dtype, FileDtype::F32);
  EXPECT_EQ(tensors.at("a").shape, (Shape{2, 1}));
  EXPECT_EQ(tensors.at("b").begin, 8 + kSmall.size() + 8);
  EXPECT_EQ(tensors.at("b").end, file.size());
}

TEST(SafetensorsHeader, EveryTruncationIsRejected) {
  const std::string file = file_of(kSmall, 10);
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_TRUE(says(rejection(file.substr(0, size)), "truncated")) << size;
  }
}

// Like a sparse file of any size.
TEST(SafetensorsHeader, NoMemoryIsTakenForTheSizeThatAFileClaims) {
  const std::uint64_t claimed = std::uint64_t{1} << 41;
  const std::string said = complaint([&] {
    parse_header(bytes_of(std::as_bytes(std::span(&claimed, 1))), 2 * claimed, "x.safetensors");
  });
  EXPECT_TRUE(says(said, "x.safetensors")) << said;
  EXPECT_TRUE(says(said, "at most 33554432 are read")) << said;
}

TEST(SafetensorsHeader, EveryFlippedByteIsReadOrRejected) {
  const std::string file = file_of(kSmall, 10);
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const char flip : {'\x01', '\x20', '\x80', '\xff'}) {
      std::string changed = file;
      changed[at] ^= flip;
      EXPECT_NO_THROW(rejection(changed)) << at;
    }
  }
}

TEST(SafetensorsHeader, HeaderLengthIsHeldAgainstTheFile) {
  std::string file = file_of(kSmall, 10);
  std::memset(file.data(), 0xff, 8);
  EXPECT_TRUE(says(rejection(file), "claims 18446744073709551615 bytes"));
}

TEST(SafetensorsHeader, BadJsonIsRejected) {
  EXPECT_TRUE(says(rejection("[]", 0), "object expected"));
  EXPECT_TRUE(says(rejection("{", 0), "not valid JSON"));
  EXPECT_TRUE(says(rejection("{\"\xff\":1}", 0), "not valid JSON"));
  std::string deep = R"({"a":)";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_TRUE(says(rejection(deep, 0), "deeper"));
}

TEST(SafetensorsHeader, DuplicateNamesAreRejected) {
  EXPECT_TRUE(says(rejection(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                             1),
                   "\"a\" appears twice"));
}

TEST(SafetensorsHeader, EntriesAreChecked) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& at) {
    return rejection(
        R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + at + "}}",
        8);
  };
  EXPECT_EQ(entry(R"("F32")", "[2]", "[0,8]"), "");
  EXPECT_TRUE(says(entry(R"("F31")", "[2]", "[0,8]"), "dtype \"F31\""));
  EXPECT_TRUE(says(entry("7", "[2]", "[0,8]"), "dtype 7"));
  EXPECT_TRUE(says(entry(R"("F32")", "[3]", "[0,8]"), "larger than the file's 8 bytes"));
  EXPECT_TRUE(says(entry(R"("F32")", "[1]", "[0,8]"), "takes 4 bytes"));
  EXPECT_TRUE(says(entry(R"("F32")", "[-2]", "[0,8]"), "dim -2"));
  EXPECT_TRUE(says(entry(R"("F32")", "[2.0]", "[0,8]"), "dim 2.0"));
  EXPECT_TRUE(says(entry(R"("F32")", "2", "[0,8]"), "list"));
  EXPECT_TRUE(says(entry(R"("F32")", "[4294967296,4294967296,4294967296]", "[0,8]"), "larger"));
  EXPECT_TRUE(says(entry(R"("F32")", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "dims"));
  EXPECT_TRUE(says(entry(R"("F32")", "[2]", "[8,0]"), "another size"));
  EXPECT_TRUE(says(entry(R"("F32")", "[2]", "[4,12]"), "data offset 12"));
  EXPECT_TRUE(says(entry(R"("F32")", "[2]", "[0]"), "[begin, end]"));
  EXPECT_TRUE(says(entry(R"("F32")", "[2]", "[0,18446744073709551615]"), "at most 8"));
  EXPECT_TRUE(says(rejection(R"({"a":{"shape":[],"data_offsets":[0,1]}})", 1), "dtype is missing"));
  EXPECT_TRUE(says(rejection(R"({"a":1})", 0), "object expected"));
  EXPECT_TRUE(says(rejection(R"({"__metadata__":{"a":1}})", 0), "not text"));
}

TEST(SafetensorsHeader, OverlapsHolesAndLeftoversAreRejected) {
  const auto two = [](const std::string& a, const std::string& b, std::size_t data) {
    return rejection(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                         R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                     data);
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "");
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "");
  EXPECT_TRUE(says(two("[0,4]", "[2,6]", 8), "back to back"));
  EXPECT_TRUE(says(two("[0,4]", "[5,9]", 9), "back to back"));
  EXPECT_TRUE(says(two("[0,4]", "[4,8]", 9), "cut short or damaged"));
}

class Safetensors : public CheckpointFolder {
 protected:
  static void put(const std::filesystem::path& path, const std::string& tensor, float value) {
    const NewTensor row{tensor, FileDtype::F32, {1}};
    write_safetensors(path, std::span(&row, 1), [&](const NewTensor&, const base::Append& append) {
      append({reinterpret_cast<const char*>(&value), sizeof value});
    });
  }
  std::string folder_rejection() {
    return complaint([&] { SafetensorsFolder{dir_}; });
  }
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  const std::vector<NewTensor> rows{{"x", FileDtype::F32, {2, 2}}, {"y\"", FileDtype::BF16, {3}}};
  write_safetensors(dir_ / "a", rows, [](const NewTensor& row, const base::Append& append) {
    append(row.name == "x" ? "0123456789abcdef" : "ABCDEF");
  });
  const SafetensorsFile file(dir_ / "a");
  const TensorView x = file.get("x"), y = file.get("y\"");
  EXPECT_EQ(bytes_in(x), "0123456789abcdef");
  EXPECT_EQ(y.shape, (Shape{3}));
  EXPECT_EQ(bytes_in(y), "ABCDEF");
  EXPECT_EQ(file.tensors().at("x").begin % 8, 0u);
  EXPECT_FALSE(file.find("z").has_value());
  EXPECT_TRUE(says(complaint([&] { file.get("z"); }), "tensor 'z' is missing"));
}

TEST_F(Safetensors, AFileCutAfterItWasOpenedIsAnError) {
  const std::vector<NewTensor> rows{{"x", FileDtype::F32, {4}}};
  write_safetensors(dir_ / "a", rows, [](const NewTensor&, const base::Append& append) {
    append("0123456789abcdef");
  });
  const SafetensorsFile file(dir_ / "a");
  std::filesystem::resize_file(dir_ / "a", 0);
  std::vector<float> values(4);
  EXPECT_THROW(read_elements(file.get("x"), 0, std::span<float>(values)), base::SystemError);
}

TEST_F(Safetensors, AWriterThatGivesTooFewBytesLeavesNoFile) {
  const NewTensor row{"x", FileDtype::F32, {2}};
  EXPECT_THROW(
      write_safetensors(dir_ / "a",
                        std::span(&row, 1),
                        [](const NewTensor&, const base::Append& append) { append("1234"); }),
      base::InternalError);
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST_F(Safetensors, AnIndexJoinsItsFiles) {
  put(dir_ / "one.safetensors", "a", 1);
  put(dir_ / "two.safetensors", "b", 2);
  base::write_whole(
      dir_ / "model.safetensors.index.json",
      R"({"metadata":{},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const SafetensorsFolder folder(dir_);
  EXPECT_EQ(folder.tensor_names(), (std::vector<std::string>{"a", "b"}));
  float value = 0;
  read_elements(*folder.find("b"), 0, std::span(&value, 1));
  EXPECT_EQ(value, 2);
}

TEST_F(Safetensors, AnIndexMustNotLeadOutOfItsFolder) {
  put(dir_ / "one.safetensors", "a", 1);
  std::filesystem::create_directories(dir_ / "in");
  for (const char* name : {"../one.safetensors", "/one.safetensors", "", "..", ".safetensors"}) {
    base::write_whole(dir_ / "in/model.safetensors.index.json",
                      std::string(R"({"weight_map":{"a":")") + name + "\"}}");
    EXPECT_TRUE(
        says(complaint([&] { SafetensorsFolder{dir_ / "in"}; }), "a *.safetensors of the folder"))
        << name;
  }
}

TEST_F(Safetensors, AnIndexMustAgreeWithItsFiles) {
  put(dir_ / "one.safetensors", "a", 1);
  const auto index = [&](const std::string& text) {
    base::write_whole(dir_ / "model.safetensors.index.json", text);
    return folder_rejection();
  };
  EXPECT_EQ(index(R"({"weight_map":{"a":"one.safetensors"}})"), "");
  EXPECT_TRUE(says(index(R"({"weight_map":{"b":"one.safetensors"}})"), "'b' is missing"));
  EXPECT_TRUE(says(index("{}"), "weight_map is missing"));
  EXPECT_TRUE(says(index(R"({"weight_map":[]})"), "an object"));
  EXPECT_TRUE(says(index(R"({"weight_map":{"a":1}})"), "text"));
  const std::vector<NewTensor> rows{{"a", FileDtype::U8, {1}}, {"b", FileDtype::U8, {1}}};
  write_safetensors(dir_ / "one.safetensors",
                    rows,
                    [](const NewTensor&, const base::Append& append) { append("x"); });
  EXPECT_TRUE(says(index(R"({"weight_map":{"a":"one.safetensors"}})"), "holds tensor 'b'"));
}

TEST_F(Safetensors, AMissingFolderIsASystemError) {
  EXPECT_THROW(SafetensorsFolder{dir_ / "none"}, base::SystemError);
}

}  // namespace safetensors_test
}  // namespace weft::checkpoint
