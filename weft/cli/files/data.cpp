// weft data: writes token ids into Megatron's indexed dataset, and shows such a dataset.
#include <algorithm>
#include <array>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/data/indexed_files.h"
#include "weft/data/token_import.h"

namespace weft::cli {
namespace {

using base::text;

constexpr double kLargestId = std::numeric_limits<std::int32_t>::max() - 1;
constexpr std::array<std::pair<std::string_view, data::InputFormat>, 3> kFormats{
    std::pair{std::string_view("jsonl"), data::InputFormat::Jsonl},
    {"npy", data::InputFormat::Npy},
    {"raw", data::InputFormat::Raw}};

struct ImportOptions {
  std::vector<std::string> files;
  std::string prefix, input_format, raw_type, key = "tokens";
  std::optional<std::int64_t> vocab_size, append_eod, split_after;
  Format format = Format::Text;
};

struct DataShowOptions {
  std::string prefix;
  std::optional<std::int64_t> document;
  std::int64_t tokens = 16;
  Format format = Format::Text;
};

data::ImportRequest request_of(const ImportOptions& options) {
  data::ImportRequest request{.files = {options.files.begin(), options.files.end()},
                              .prefix = options.prefix,
                              .key = options.key,
                              .rules = {.vocab_size = options.vocab_size,
                                        .append_eod = options.append_eod,
                                        .split_after = options.split_after}};
  if (!options.input_format.empty()) {
    const auto* found = std::ranges::find(kFormats, options.input_format, [](const auto& each) {
      return each.first;
    });
    if (found == kFormats.end()) {
      throw base::ConfigError(text("--format {}: one of jsonl, npy and raw is needed",
                                   base::shown(options.input_format)));
    }
    request.format = found->second;
  }
  if (!options.raw_type.empty()) {
    request.raw_type = data::integer_type_of(options.raw_type);
    if (!request.raw_type) {
      throw base::ConfigError(text("--dtype {}: one of {} is needed",
                                   base::shown(options.raw_type),
                                   data::integer_type_words()));
    }
  }
  return request;
}

std::string_view dtype_of(data::TokenType type) { return word(integer_type(type)); }

std::string sized(std::string_view name, std::uint64_t bytes) {
  return text("{}  {} bytes ({})\n", name, bytes, base::human_bytes(static_cast<double>(bytes)));
}

std::string counts_text(const std::string& prefix,
                        std::uint64_t documents,
                        std::uint64_t sequences,
                        std::uint64_t tokens,
                        data::TokenType type) {
  return text("{}: {}, {}, {} of {}\n",
              prefix,
              base::counted(static_cast<std::int64_t>(documents), "document"),
              base::counted(static_cast<std::int64_t>(sequences), "sequence"),
              base::counted(static_cast<std::int64_t>(tokens), "token"),
              dtype_of(type));
}

void show_imported_text(const ImportOptions& options, const data::Imported& imported) {
  const std::string& prefix = options.prefix;
  print_text(
      counts_text(prefix, imported.documents, imported.sequences, imported.tokens, imported.type));
  print_text(sized(prefix + ".bin", imported.bin_bytes));
  print_text(sized(prefix + ".idx", imported.idx_bytes));
  print_text(text("largest id  {}\n", imported.largest_id));
  if (imported.empty_documents > 0) {
    print_text(
        text("left out  {} without tokens\n",
             base::counted(static_cast<std::int64_t>(imported.empty_documents), "document")));
  }
  if (!options.vocab_size &&
      data::token_type_for(imported.largest_id + 1) != data::TokenType::I32) {
    print_text("With --vocab-size of less than 65500 a token takes 2 bytes, not 4.\n");
  }
  print_text(text("Train on it: weft train dataset.kind=indexed dataset.path={}\n", prefix));
}

void show_imported_json(const ImportOptions& options, const data::Imported& imported) {
  print_json({{"prefix", options.prefix},
              {"documents", imported.documents},
              {"sequences", imported.sequences},
              {"tokens", imported.tokens},
              {"dtype", dtype_of(imported.type)},
              {"bin_bytes", imported.bin_bytes},
              {"idx_bytes", imported.idx_bytes},
              {"largest_id", imported.largest_id},
              {"empty_documents", imported.empty_documents}});
}

int run_import(const ImportOptions& options) {
  data::ImportRequest request = request_of(options);
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  const double all =
      static_cast<double>(std::max<std::uint64_t>(1, data::input_bytes(request.files)));
  int drawn = -1;
  request.rules.progress = [&](std::uint64_t bytes) {
    const double share = static_cast<double>(bytes) / all;
    if (const int now = static_cast<int>(share * 1000); now != drawn) {
      drawn = now;
      line.show(text("{} {:5.1f} % of {}", bar(share, 24), share * 100, base::human_bytes(all)));
    }
    return stop.load() ? data::TokenSink::Rules::Next::Stop : data::TokenSink::Rules::Next::GoOn;
  };
  const std::optional<data::Imported> imported = import_tokens(request);
  line.clear();
  if (!imported) {
    print_failure({"stopped before the end: nothing was written"}, options.format);
    return interrupted_code();
  }
  switch (options.format) {
    case Format::Text:
      show_imported_text(options, *imported);
      break;
    case Format::Json:
      show_imported_json(options, *imported);
      break;
  }
  return kGood;
}

struct Extent {
  std::uint64_t first = 0, tokens = 0;
};

Extent extent_of(const data::IndexedIndex& index, std::uint64_t document) {
  const auto begin = static_cast<std::uint64_t>(index.boundary(document));
  const auto end = static_cast<std::uint64_t>(index.boundary(document + 1));
  Extent extent;
  for (std::uint64_t sequence = begin; sequence < end; ++sequence) {
    extent.tokens += static_cast<std::uint64_t>(index.length(sequence));
  }
  if (begin < end) {
    extent.first = static_cast<std::uint64_t>(index.offset(begin)) / token_bytes(index.type());
  }
  return extent;
}

// Requested document.
struct ShownDocument {
  std::uint64_t number = 0, tokens = 0;
  std::vector<std::int64_t> first;
};

std::optional<ShownDocument> document_of(const data::IndexedFiles& files,
                                         const DataShowOptions& options) {
  if (!options.document) return std::nullopt;
  const auto number = static_cast<std::uint64_t>(*options.document);
  if (const std::uint64_t documents = files.index().documents(); number >= documents) {
    throw base::ConfigError(text("--document {}: {} has {}, counted from 0",
                                 number,
                                 options.prefix,
                                 base::counted(static_cast<std::int64_t>(documents), "document")));
  }
  const Extent extent = extent_of(files.index(), number);
  ShownDocument shown{.number = number, .tokens = extent.tokens, .first = {}};
  shown.first.resize(std::min(extent.tokens, static_cast<std::uint64_t>(options.tokens)));
  files.read(extent.first, shown.first);
  return shown;
}

struct Lengths {
  std::uint64_t shortest = 0, longest = 0;
};

Lengths lengths_of(const data::IndexedIndex& index) {
  Lengths lengths;
  for (std::uint64_t i = 0; i < index.documents(); ++i) {
    const std::uint64_t tokens = extent_of(index, i).tokens;
    lengths.shortest = i == 0 ? tokens : std::min(lengths.shortest, tokens);
    lengths.longest = std::max(lengths.longest, tokens);
  }
  return lengths;
}

void show_text(const std::string& prefix,
               const data::IndexedFiles& files,
               const std::optional<ShownDocument>& document) {
  const data::IndexedIndex& index = files.index();
  print_text(
      counts_text(prefix, index.documents(), index.sequences(), index.tokens(), index.type()));
  print_text(sized(prefix + ".bin", files.bin().size()));
  print_text(sized(prefix + ".idx", files.idx_bytes()));
  if (index.documents() > 0) {
    const Lengths lengths = lengths_of(index);
    print_text(text("documents of {} to {}, {:.1f} on average\n",
                    lengths.shortest,
                    base::counted(static_cast<std::int64_t>(lengths.longest), "token"),
                    static_cast<double>(index.tokens()) / static_cast<double>(index.documents())));
  }
  if (!document) return;
  print_text(text("document {}, {}: {}{}\n",
                  document->number,
                  base::counted(static_cast<std::int64_t>(document->tokens), "token"),
                  fmt::join(document->first, " "),
                  document->first.size() < document->tokens ? " ..." : ""));
}

void show_json(const std::string& prefix,
               const data::IndexedFiles& files,
               const std::optional<ShownDocument>& document) {
  const data::IndexedIndex& index = files.index();
  const Lengths lengths = lengths_of(index);
  base::Json json{{"prefix", prefix},
                  {"documents", index.documents()},
                  {"sequences", index.sequences()},
                  {"tokens", index.tokens()},
                  {"dtype", dtype_of(index.type())},
                  {"bin_bytes", files.bin().size()},
                  {"idx_bytes", files.idx_bytes()},
                  {"shortest_document", lengths.shortest},
                  {"longest_document", lengths.longest}};
  if (document) {
    json["document"] = {{"number", document->number},
                        {"tokens", document->tokens},
                        {"first_tokens", document->first}};
  }
  print_json(json);
}

// Strips the ending of either file, which shells complete.
std::string without_ending(const std::string& path) {
  const bool one_of_two = path.ends_with(".idx") || path.ends_with(".bin");
  return one_of_two ? path.substr(0, path.size() - 4) : path;
}

int run_data_show(const DataShowOptions& options) {
  const std::string prefix = without_ending(options.prefix);
  const data::IndexedFiles files(prefix);
  const std::optional<ShownDocument> document = document_of(files, options);
  switch (options.format) {
    case Format::Text:
      show_text(prefix, files, document);
      break;
    case Format::Json:
      show_json(prefix, files, document);
      break;
  }
  return kGood;
}

void add_import(CLI::App& data, Action& chosen) {
  CLI::App* command = data.add_subcommand("import", "token ids into Megatron's .bin and .idx");
  auto options = std::make_shared<ImportOptions>();
  command
      ->add_option("FILE",
                   options->files,
                   "files with token ids, one after the other: .jsonl (a document a line: a list, "
                   "or an object with one), .npy (one document, or one a row), raw integers")
      ->required()
      ->type_name("");
  command->add_option("--out", options->prefix, "path of the two files to write, without ending")
      ->required()
      ->type_name("PREFIX");
  command->add_option("--format", options->input_format, "what the files are, not by their endings")
      ->type_name("jsonl|npy|raw");
  command
      ->add_option("--dtype",
                   options->raw_type,
                   "raw integers: their type, little-endian: " + data::integer_type_words())
      ->type_name("u16|i32|...");
  command->add_option("--key", options->key, "JSON objects: the key of the list")
      ->capture_default_str();
  within(1,
         kLargestId + 1,
         command->add_option("--vocab-size",
                             options->vocab_size,
                             "ids are held against it; below 65500 a token takes 2 bytes, else and "
                             "without it 4, as Megatron chooses"))
      ->type_name("N");
  CLI::Option* append =
      within(
          0,
          kLargestId,
          command->add_option("--append-eod", options->append_eod, "put it behind every document"))
          ->type_name("ID");
  within(
      0,
      kLargestId,
      command->add_option("--split-after", options->split_after, "a document ends after this id"))
      ->type_name("ID")
      ->excludes(append);
  add_format(*command, options->format);
  command->footer(
      "Example: weft data import corpus.jsonl --vocab-size 50304 --out data/corpus\nWhat is there "
      "already is not replaced; what is not whole is not there.");
  on_chosen(*command, chosen, std::move(options), run_import);
}

void add_show(CLI::App& data, Action& chosen) {
  CLI::App* command = data.add_subcommand("show", "what a .bin and .idx hold");
  auto options = std::make_shared<DataShowOptions>();
  command->add_option("PREFIX", options->prefix, "path of the two files, with or without ending")
      ->required();
  CLI::Option* document = within(0,
                                 static_cast<double>(std::int64_t{1} << 53),
                                 command->add_option("--document",
                                                     options->document,
                                                     "show its first tokens, counted from 0"))
                              ->type_name("N");
  within(1, 1 << 20, command->add_option("--tokens", options->tokens, "how many of them"))
      ->capture_default_str()
      ->needs(document);
  add_format(*command, options->format);
  command->footer("Example: weft data show data/corpus --document 0");
  on_chosen(*command, chosen, std::move(options), run_data_show);
}

}  // namespace

void add_data(CLI::App& program, Action& chosen) {
  CLI::App* data =
      program.add_subcommand("data",
                             "token ids into Megatron's indexed files, and what those hold");
  data->require_subcommand(1);
  data->footer("Example: weft data import corpus.jsonl --vocab-size 50304 --out data/corpus");
  add_import(*data, chosen);
  add_show(*data, chosen);
}

}  // namespace weft::cli
