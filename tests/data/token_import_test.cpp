#include "weft/data/token_import.h"

#include "tests/data/temporary_folder_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/data/indexed_files.h"
#include "weft/data/jsonl_tokens.h"

namespace weft::data {
namespace token_import_test {

namespace fs = std::filesystem;
using Documents = std::vector<std::vector<std::int64_t>>;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class TokenImport : public TemporaryFolder {
 protected:
  std::string file(const std::string& name, const std::string& bytes) {
    base::write_whole(dir_ / name, bytes);
    return (dir_ / name).string();
  }
  template <typename Number>
  static std::string raw(const std::vector<Number>& numbers) {
    return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
  }
  static std::string npy(const std::string& descr, const std::string& shape, std::string data) {
    std::string dict =
        base::text("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", descr, shape);
    const auto size = static_cast<std::uint16_t>(dict.size());
    return std::string("\x93NUMPY\x01\0", 8) + raw<std::uint16_t>({size}) + dict + data;
  }
  std::string prefix() const { return (dir_ / "out").string(); }

  ImportRequest request(const std::string& name, const std::string& bytes) {
    return {.files = {file(name, bytes)}, .prefix = prefix()};
  }
  // Stored documents, read back by the reader of `weft train`.
  Documents documents() const {
    const IndexedFiles files(prefix());
    const IndexedIndex& index = files.index();
    Documents all(index.documents());
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < index.documents(); ++i) {
      for (std::int64_t s = index.boundary(i); s < index.boundary(i + 1); ++s) {
        std::vector<std::int64_t> ids(
            static_cast<std::size_t>(index.length(static_cast<std::uint64_t>(s))));
        files.read(at, ids);
        at += ids.size();
        all[i].insert(all[i].end(), ids.begin(), ids.end());
      }
    }
    return all;
  }
  // Error of an import, which leaves no file behind.
  std::string complaint(const ImportRequest& request) {
    const auto before = std::distance(fs::directory_iterator(dir_), fs::directory_iterator());
    std::string what;
    try {
      import_tokens(request);
    } catch (const base::ConfigError& error) {
      what = error.what();
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), before);
    return what;
  }
  std::string complaint(const std::string& name, const std::string& bytes) {
    return complaint(request(name, bytes));
  }
};

TEST_F(TokenImport, JsonLinesAreDocuments) {
  ImportRequest wanted =
      request("a.jsonl",
              "[1, 2,3]\n\n{\"text\": [\"x\", {\"tokens\": 7}], \"tokens\": [4]}\r\n[]\n[65499]");
  const Imported imported = import_tokens(wanted).value();
  EXPECT_EQ(imported.type, TokenType::I32) << "as Megatron, where the vocabulary is not known";
  EXPECT_EQ(imported.documents, 3u);
  EXPECT_EQ(imported.tokens, 5u);
  EXPECT_EQ(imported.empty_documents, 1u);
  EXPECT_EQ(imported.largest_id, 65499);
  EXPECT_EQ(imported.bin_bytes, fs::file_size(prefix() + ".bin"));
  EXPECT_EQ(imported.idx_bytes, fs::file_size(prefix() + ".idx"));
  EXPECT_EQ(documents(), (Documents{{1, 2, 3}, {4}, {65499}}));
}

TEST_F(TokenImport, AnotherKeyMayNameTheList) {
  ImportRequest wanted = request("a.jsonl", "{\"ids\": [1], \"tokens\": null}\n");
  wanted.key = "ids";
  import_tokens(wanted);
  EXPECT_EQ(documents(), (Documents{{1}}));
}

TEST_F(TokenImport, TheTypeIsMegatronsChoice) {
  EXPECT_EQ(token_type_for(65499), TokenType::U16);
  EXPECT_EQ(token_type_for(65500), TokenType::I32);
  EXPECT_EQ(token_type_for({}), TokenType::I32);
  ImportRequest wanted = request("a.jsonl", "[1,511]\n");
  wanted.rules.vocab_size = 512;
  EXPECT_EQ(import_tokens(wanted).value().type, TokenType::U16);
  EXPECT_EQ(documents(), (Documents{{1, 511}}));
}

TEST_F(TokenImport, WritesTheBytesOfMegatronsOwnBuilder) {
  const std::string golden = std::string(WEFT_SOURCE_DIR) + "/tests/golden/megatron_u16";
  const IndexedFiles files(golden);
  std::string lines;
  for (std::uint64_t i = 0, at = 0; i < files.index().sequences(); ++i) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(files.index().length(i)));
    files.read(at, ids);
    at += ids.size();
    lines += base::text("[{}]\n", fmt::join(ids, ","));
  }
  ImportRequest wanted = request("golden.jsonl", lines);
  wanted.rules.vocab_size = 512;
  import_tokens(wanted);
  for (const char* ending : {".bin", ".idx"}) {
    EXPECT_EQ(base::read_text(prefix() + ending), base::read_text(golden + ending)) << ending;
  }
}

TEST_F(TokenImport, ArraysAreOneDocumentOrOneARow) {
  ImportRequest wanted{
      .files = {file("a.npy", npy("<u2", "(3,)", raw<std::uint16_t>({1, 2, 3}))),
                file("b.npy", npy("<i8", "(2, 2)", raw<std::int64_t>({4, 5, 6, 7})))},
      .prefix = prefix()};
  import_tokens(wanted);
  EXPECT_EQ(documents(), (Documents{{1, 2, 3}, {4, 5}, {6, 7}}));
}

TEST_F(TokenImport, RowsLongerThanAChunkStayWhole) {
  std::vector<std::uint32_t> numbers(300000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i % 997);
  import_tokens(request("a.npy", npy("<u4", "(3, 100000)", raw(numbers))));
  const Documents found = documents();
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(found[i / 100000][i % 100000], numbers[i]);
  }
}

TEST_F(TokenImport, RawIntegersNeedTheirType) {
  ImportRequest wanted = request("a.bin", raw<std::uint16_t>({7, 8, 0, 9}));
  EXPECT_PRED2(has, complaint(wanted), "--dtype");
  wanted.raw_type = IntegerType::U16;
  wanted.rules.split_after = 0;
  import_tokens(wanted);
  EXPECT_EQ(documents(), (Documents{{7, 8, 0}, {9}}));
  fs::remove(prefix() + ".bin");
  fs::remove(prefix() + ".idx");
  wanted.raw_type = IntegerType::I32;
  file("a.bin", "123");
  EXPECT_PRED2(has, complaint(wanted), "has 3 bytes");
  wanted.files = {file("a.jsonl", "[1]")};
  EXPECT_PRED2(has, complaint(wanted), "no file is raw");
}

TEST_F(TokenImport, AnEndOfDocumentIsPutBehindEachThatHasTokens) {
  ImportRequest wanted = request("a.jsonl", "[1,2]\n[]\n[3]\n");
  wanted.rules.append_eod = 99;
  EXPECT_EQ(import_tokens(wanted).value().largest_id, 99);
  EXPECT_EQ(documents(), (Documents{{1, 2, 99}, {3, 99}}));
}

TEST_F(TokenImport, DamagedLinesAreNamedWithTheirPlace) {
  EXPECT_PRED2(has, complaint("a.jsonl", "[1]\n[1, 2\n"), "a.jsonl', line 2: no JSON at column");
  EXPECT_PRED2(has, complaint("a.jsonl", "[1]\n\n[1, -2]\n"), "line 3, token 1: id -2");
  EXPECT_PRED2(has, complaint("a.jsonl", "[1, 2.5]"), "line 1: token 1 is 2.5");
  EXPECT_PRED2(has, complaint("a.jsonl", "[1, \"2\"]"), "token 1 is a text");
  EXPECT_PRED2(has, complaint("a.jsonl", "[1, [2]]"), "token 1 is a list");
  EXPECT_PRED2(has, complaint("a.jsonl", "[{}]"), "token 0 is an object");
  EXPECT_PRED2(has, complaint("a.jsonl", "7"), "a list of ids, or an object");
  EXPECT_PRED2(has, complaint("a.jsonl", "{\"tokens\": 7}"), "'tokens' is a number");
  EXPECT_PRED2(has, complaint("a.jsonl", "{\"text\": \"a\", \"ids\": [1]}"), "but text, ids");
  EXPECT_PRED2(has, complaint("a.jsonl", "{\"tokens\": [1], \"tokens\": [2]}"), "twice");
  EXPECT_PRED2(has, complaint("a.jsonl", "[99999999999999999999]"), "no integer");
  EXPECT_PRED2(has, complaint("a.jsonl", "[18446744073709551615]"), "or more");
  EXPECT_PRED2(has, complaint("a.jsonl", "[2147483647]"), "0 to 2147483646");
  EXPECT_PRED2(has, complaint("a.jsonl", std::string(100000, '[')), "line 1");
  EXPECT_PRED2(has, complaint("a.jsonl", std::string("[1]\0[2]", 7)), "line 1");
}

TEST_F(TokenImport, DamagedArraysAreNamedWithTheirPlace) {
  const std::string good = npy("<i4", "(2, 2)", raw<std::int32_t>({1, 2, 3, -4}));
  EXPECT_PRED2(has, complaint("a.npy", good), "a.npy', row 1, token 1: id -4");
  EXPECT_PRED2(has, complaint("a.npy", good.substr(0, good.size() - 1)), "15 bytes follow");
  EXPECT_PRED2(has,
               complaint("a.npy", npy("<i4", "(4611686018427387904, 4)", "")),
               "0 bytes follow");
  EXPECT_PRED2(has, complaint("a.npy", npy("<i4", "(9223372036854775807, 0)", "")), "no token");
}

TEST_F(TokenImport, TheVocabularyBoundsIds) {
  ImportRequest wanted = request("a.jsonl", "[1]\n[512]\n");
  wanted.rules.vocab_size = 512;
  EXPECT_PRED2(has, complaint(wanted), "line 2, token 0: id 512 is outside a vocabulary of 512");
  wanted.files = {file("a.jsonl", "[1]\n")};
  wanted.rules.append_eod = 512;
  EXPECT_PRED2(has, complaint(wanted), "--append-eod 512");
}

TEST_F(TokenImport, NothingToReadIsAnError) {
  EXPECT_PRED2(has, complaint("a.jsonl", ""), "no token");
  EXPECT_PRED2(has, complaint("a.jsonl", "\n \n[]\n"), "no token");
  EXPECT_PRED2(has, complaint("a.npy", npy("<i4", "(0,)", "")), "no token");
  EXPECT_THROW(import_tokens({.files = {dir_ / "none.jsonl"}, .prefix = prefix()}),
               base::MissingInput);
}

TEST_F(TokenImport, WhatIsThereIsNotReplaced) {
  ImportRequest wanted = request("out.bin", raw<std::uint16_t>({1, 2}));
  wanted.raw_type = IntegerType::U16;
  EXPECT_PRED2(has, complaint(wanted), "is there already");
  EXPECT_EQ(base::read_text(prefix() + ".bin"), raw<std::uint16_t>({1, 2}));
  wanted.prefix += ".bin";
  EXPECT_PRED2(has, complaint(wanted), "without ending");
  wanted.prefix = (dir_ / "no" / "out").string();
  EXPECT_THROW(import_tokens(wanted), base::SystemError);
}

TEST_F(TokenImport, AStopLeavesNothing) {
  ImportRequest wanted = request("a.jsonl", "[1]\n[2]\n[3]\n");
  std::uint64_t told = 0;
  wanted.rules.progress = [&](std::uint64_t bytes) {
    told = bytes;
    return bytes > 4 ? TokenSink::Rules::Next::Stop : TokenSink::Rules::Next::GoOn;
  };
  EXPECT_EQ(import_tokens(wanted), std::nullopt);
  EXPECT_EQ(told, 8u);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), fs::directory_iterator()), 1);
}

TEST_F(TokenImport, ALineTooLongToHoldIsNamed) {
  const base::InputFile input(file("a.jsonl", "[1]\n[" + std::string(3 << 20, ' ') + "2]\n"));
  IndexBuilder index(TokenType::U16);
  const base::Append nowhere = [](std::string_view) {};
  const TokenSink::Rules rules;
  TokenSink sink(rules, index, nowhere);
  try {
    read_jsonl(input, "tokens", sink, 1 << 20);
    FAIL();
  } catch (const base::ConfigError& error) {
    EXPECT_PRED2(has, std::string(error.what()), "line 2: it has more than 1048576 bytes");
  }
}

TEST(IndexBuilderTest, ADocumentTooLongForASequenceIsCut) {
  IndexBuilder index(TokenType::U16, 4);
  index.add_tokens(2);
  index.end_document();
  index.add_tokens(9);
  index.end_document();
  index.add_tokens(4);
  index.end_document();
  index.end_document();
  std::string idx;
  index.write([&](std::string_view bytes) { idx += bytes; });
  const IndexedIndex read = parse_index(std::as_bytes(std::span(idx)), 30, "cut.idx");
  EXPECT_EQ(read.documents(), 3u);
  EXPECT_EQ(read.sequences(), 5u);
  EXPECT_EQ(read.boundary(1), 1);
  EXPECT_EQ(read.boundary(2), 4);
  EXPECT_EQ(read.length(3), 1);
}

}  // namespace token_import_test
}  // namespace weft::data
