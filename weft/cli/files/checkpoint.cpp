// weft checkpoint: content of a checkpoint; conversion from and to Hugging Face folders.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/manifest.h"
#include "weft/checkpoint/state_reader.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/files/checkpoint_convert.h"
#include "weft/cli/memory/byte_meter.h"
#include "weft/cli/output.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;
using checkpoint::Manifest;

// Check of completeness: by file sizes, or by all bytes.
enum class Looks { AtSizes, AtBytes };

struct ShowOptions {
  std::string folder;
  Looks looks = Looks::AtSizes;
  Format format = Format::Text;
};

struct Kind {
  std::int64_t tensors = 0, elements = 0;
  std::uint64_t bytes = 0;
};

std::uint64_t bytes_of(const checkpoint::StoredState& state) {
  return static_cast<std::uint64_t>(state.shape.elements()) *
         checkpoint::element_bytes(state.dtype);
}

// Groups by prefix: "weights", "optimizer.moment1" and so on.
std::map<std::string, Kind> kinds_of(const Manifest& manifest) {
  std::map<std::string, Kind> kinds;
  for (const auto& [name, state] : manifest.states) {
    Kind& kind = kinds[name.substr(0, name.find('/'))];
    ++kind.tensors;
    kind.elements += state.shape.elements();
    kind.bytes += bytes_of(state);
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
               const std::vector<std::string>& wrong,
               Looks looks) {
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
  if (wrong.empty() && looks == Looks::AtBytes) {
    return print_text("whole       yes, every byte has its checksum\n");
  }
  if (wrong.empty()) {
    return print_text("whole       yes, by the sizes of its files (--verify reads every byte)\n");
  }
  for (const std::string& line : wrong) print_text(text("NOT WHOLE   {}\n", line));
}

void show_json(const fs::path& folder,
               const Manifest& manifest,
               const std::vector<std::string>& wrong,
               Looks looks) {
  base::Json kinds = base::Json::object();
  for (const auto& [name, kind] : kinds_of(manifest)) {
    kinds[name] = {{"tensors", kind.tensors}, {"elements", kind.elements}, {"bytes", kind.bytes}};
  }
  base::Json tensors = base::Json::array();
  for (const auto& [name, state] : manifest.states) {
    tensors.push_back({{"name", name},
                       {"shape", state.shape.dims()},
                       {"dtype", checkpoint::word(state.dtype)},
                       {"bytes", bytes_of(state)}});
  }
  print_json({{"folder", folder.string()},
              {"step", manifest.step},
              {"samples", manifest.samples},
              {"seed", manifest.seed},
              {"layout", manifest.layout},
              {"files", manifest.files.size()},
              {"bytes", all_bytes(manifest)},
              {"state", std::move(kinds)},
              {"tensors", std::move(tensors)},
              {"whole", wrong.empty()},
              {"verified", looks == Looks::AtBytes},
              {"wrong", wrong}});
}

std::vector<std::string> wrong_bytes(const fs::path& folder, const Manifest& manifest) {
  checkpoint::StateReader reader(manifest, folder);
  ByteMeter meter(all_bytes(manifest));
  return reader.verify([&](std::uint64_t done) { meter.at(done); });
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
  std::vector<std::string> wrong = checkpoint::wrong_files(found->folder, manifest);
  if (options.looks == Looks::AtBytes) {
    try {
      wrong = wrong_bytes(found->folder, manifest);
    } catch (const Stopped&) {
      print_failure({"stopped before every byte was read"}, options.format);
      return interrupted_code();
    }
  }
  switch (options.format) {
    case Format::Text:
      show_text(found->folder, manifest, wrong, options.looks);
      break;
    case Format::Json:
      show_json(found->folder, manifest, wrong, options.looks);
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
  show->add_flag_callback(
      "--verify",
      [options] { options->looks = Looks::AtBytes; },
      "read every byte and hold it against its checksum, not the sizes of files alone");
  add_format(*show, options->format);
  show->footer(
      "Exit code: 0 where the checkpoint is whole, 1 where it is not.\n"
      "Examples: weft checkpoint show checkpoints/iter_0000100\n"
      "          weft checkpoint show checkpoints --verify");
  on_chosen(*show, chosen, std::move(options), run_show);
  add_checkpoint_convert(*command, chosen);
}

}  // namespace weft::cli
