// weft checkpoint: what a checkpoint holds; to and from Hugging Face folders.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/cli/arguments.h"
#include "weft/cli/checkpoint_convert.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;
using checkpoint::Manifest;

struct ShowOptions {
  std::string folder;
  Format format = Format::Text;
};

struct Kind {
  std::int64_t tensors = 0, elements = 0;
  std::uint64_t bytes = 0;
};

// "weights", "optimizer.moment1" and so on.
std::map<std::string, Kind> kinds_of(const Manifest& manifest) {
  std::map<std::string, Kind> kinds;
  for (const auto& [name, state] : manifest.states) {
    Kind& kind = kinds[name.substr(0, name.find('/'))];
    const std::int64_t elements = state.shape.elements();
    ++kind.tensors;
    kind.elements += elements;
    kind.bytes += static_cast<std::uint64_t>(elements) * checkpoint::element_bytes(state.dtype);
  }
  return kinds;
}

std::uint64_t all_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const checkpoint::StoredFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

void show_text(const fs::path& folder,
               const Manifest& manifest,
               const std::vector<std::string>& wrong) {
  print_text(text("checkpoint  {}\nstep        {}, {} samples consumed, rng.seed={}\n",
                  folder.string(),
                  manifest.step,
                  manifest.samples,
                  manifest.seed));
  print_text(text("written by  {}\n", checkpoint::layout_text(manifest)));
  print_text(text("files       {}, {}\n",
                  base::counted(std::ssize(manifest.files), "file"),
                  base::human_bytes(static_cast<double>(all_bytes(manifest)))));
  for (const auto& [name, kind] : kinds_of(manifest)) {
    print_text(text("  {:<20} {:>12}  {:>14} elements  {:>10}\n",
                    base::shown(name),
                    base::counted(kind.tensors, "tensor"),
                    kind.elements,
                    base::human_bytes(static_cast<double>(kind.bytes))));
  }
  if (wrong.empty()) return print_text("whole       yes, by the sizes of its files\n");
  for (const std::string& line : wrong) print_text(text("NOT WHOLE   {}\n", line));
}

void show_json(const fs::path& folder,
               const Manifest& manifest,
               const std::vector<std::string>& wrong) {
  base::Json kinds = base::Json::object();
  for (const auto& [name, kind] : kinds_of(manifest)) {
    kinds[name] = {{"tensors", kind.tensors}, {"elements", kind.elements}, {"bytes", kind.bytes}};
  }
  print_json({{"folder", folder.string()},
              {"step", manifest.step},
              {"samples", manifest.samples},
              {"seed", manifest.seed},
              {"layout", manifest.layout},
              {"files", manifest.files.size()},
              {"bytes", all_bytes(manifest)},
              {"state", std::move(kinds)},
              {"whole", wrong.empty()},
              {"wrong", wrong}});
}

int run_show(const ShowOptions& options) {
  const std::optional<checkpoint::Found> found = checkpoint::find_checkpoint(options.folder);
  if (!found) {
    throw base::ConfigError(
        text("'{}' has no whole checkpoint: give the folder that checkpoint.save named, or one of "
             "its iter_ folders",
             options.folder));
  }
  if (!found->note.empty()) print_warning(found->note);
  const Manifest manifest = checkpoint::read_manifest(found->folder);
  const std::vector<std::string> wrong = checkpoint::wrong_files(found->folder, manifest);
  switch (options.format) {
    case Format::Text:
      show_text(found->folder, manifest, wrong);
      break;
    case Format::Json:
      show_json(found->folder, manifest, wrong);
      break;
  }
  return wrong.empty() ? kGood : kFailed;
}

}  // namespace

void add_checkpoint(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("checkpoint", "look at what runs have saved, and convert it");
  command->require_subcommand(1);
  command->footer("Example: weft checkpoint show checkpoints");
  CLI::App* show = command->add_subcommand(
      "show",
      "step, position in the data, layout and sizes of a checkpoint, and whether it is whole");
  auto options = std::make_shared<ShowOptions>();
  show->add_option("DIR",
                   options->folder,
                   "what checkpoint.save named, or one of its iter_ folders")
      ->required();
  add_format(*show, options->format);
  show->footer("Example: weft checkpoint show checkpoints/iter_0000100");
  on_chosen(*show, chosen, std::move(options), run_show);
  add_checkpoint_convert(*command, chosen);
}

}  // namespace weft::cli
