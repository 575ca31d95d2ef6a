// weft checkpoint convert: weights from and to Hugging Face folders, without a run.
#include "weft/cli/files/checkpoint_convert.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/checkpoint/conversion.h"
#include "weft/checkpoint/step_folders.h"
#include "weft/cli/arguments.h"
#include "weft/cli/memory/byte_meter.h"
#include "weft/cli/output.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/progress.h"
#include "weft/config/dump.h"
#include "weft/train/saves/continuing.h"
#include "weft/train/weights.h"
#include "weft/words/recipe.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;
using checkpoint::WeightsFrom;

struct ConvertOptions {
  std::string folder, to_hf, to_weft, dtype, like;
  Format format = Format::Text;
  base::Overwrite overwrite = base::Overwrite::No;
};

// Result of a conversion, for text and JSON.
struct Converted {
  std::string from, to, family, dtype;
  std::int64_t step = 0;
  std::int64_t parameters = 0;  // number of elements of all weights
  std::uint64_t bytes = 0;
};

std::int64_t numbers_of(const std::vector<checkpoint::Parameter>& parameters) {
  std::int64_t all = 0;
  for (const checkpoint::Parameter& parameter : parameters) all += parameter.elements();
  return all;
}

checkpoint::StoredCheckpoint open_checkpoint(const std::string& folder) {
  const std::optional<checkpoint::Found> found = checkpoint::find_checkpoint(folder);
  if (!found) {
    throw base::ConfigError(
        text("'{}' has no whole checkpoint: give the folder that checkpoint.save named, or one of "
             "its iter_ folders (a Hugging Face folder is converted with --to-weft)",
             folder));
  }
  if (!found->note.empty()) print_warning(found->note);
  return {.folder = found->folder, .manifest = checkpoint::read_manifest(found->folder)};
}

// fp32 weights of a bf16 run come from its optimizer's masters.
WeightsFrom source_of(const ConvertOptions& options, config::ModelConfig& model) {
  using base::DType;
  if (options.dtype.empty()) return WeightsFrom::Weights;
  const DType asked = options.dtype == "fp32" ? DType::F32 : DType::BF16;
  if (options.dtype != "fp32" && options.dtype != "bf16") {
    throw base::ConfigError(text("--dtype={}: fp32 or bf16 is needed", base::shown(options.dtype)));
  }
  const bool is_widened = model.params_dtype != DType::F32 && asked == DType::F32;
  model.params_dtype = asked;
  return is_widened ? WeightsFrom::Masters : WeightsFrom::Weights;
}

Converted to_huggingface(const ConvertOptions& options) {
  const checkpoint::StoredCheckpoint from = open_checkpoint(options.folder);
  config::ModelConfig model =
      words::parse_config(from.manifest.config,
                          text("{} in '{}'", checkpoint::kManifestName, from.folder.string()))
          .model;
  const WeightsFrom source = source_of(options, model);
  std::optional<checkpoint::HuggingFaceConfig> like;
  if (!options.like.empty()) like = checkpoint::read_huggingface_config(options.like);
  const checkpoint::HuggingFaceConfig written =
      train::huggingface_config_for(model, like ? &*like : nullptr);
  require_weights(from, model, source);
  const std::uint64_t bytes = checkpoint::huggingface_bytes(written);
  ByteMeter meter(bytes);
  convert_to_huggingface(from,
                         source,
                         written,
                         {options.to_hf, options.overwrite, options.like},
                         [&](std::uint64_t done) { meter.at(done); });
  return {.from = from.folder.string(),
          .to = options.to_hf,
          .family = std::string(word(written.family)),
          .dtype = std::string(name_of(model.params_dtype)),
          .step = from.manifest.step,
          .parameters = numbers_of(checkpoint::parameters(model)),
          .bytes = bytes};
}

Converted to_checkpoint(const ConvertOptions& options) {
  if (!options.dtype.empty() || !options.like.empty()) {
    throw base::ConfigError("--dtype and --like are for --to-hf: leave them out with --to-weft");
  }
  const checkpoint::HuggingFaceModel from(options.folder);
  warn_of_weights(from);
  // Config that `weft train checkpoint.load=OUT` runs without other words.
  config::Config config;
  config.model = from.config();
  config.checkpoint.pretrained_checkpoint = std::filesystem::absolute(options.folder).string();
  train::set_continuing(
      from.config(),
      [](std::string_view) { return false; },
      config);
  const bool is_narrow = from.holds_only(checkpoint::FileDtype::BF16);
  config.model.params_dtype = is_narrow ? base::DType::BF16 : base::DType::F32;
  const std::int64_t numbers = numbers_of(from.parameters());
  const auto bytes = static_cast<std::uint64_t>(numbers) * (is_narrow ? 2 : 4);
  ByteMeter meter(bytes);
  const checkpoint::Manifest manifest =
      convert_to_checkpoint(from,
                            config::to_yaml(config),
                            {options.to_weft, options.overwrite},
                            [&](std::uint64_t done) { meter.at(done); });
  return {.from = options.folder,
          .to = options.to_weft,
          .family = std::string(word(from.family())),
          .dtype = std::string(name_of(config.model.params_dtype)),
          .parameters = numbers,
          .bytes = manifest.files.front().bytes};
}

void show(const Converted& converted, const ConvertOptions& options) {
  if (options.format == Format::Json) {
    return print_json({{"from", converted.from},
                       {"to", converted.to},
                       {"step", converted.step},
                       {"family", converted.family},
                       {"dtype", converted.dtype},
                       {"parameters", converted.parameters},
                       {"bytes", converted.bytes}});
  }
  print_text(text("{} -> {}: {}, {} numbers in {}, {}\n",
                  converted.from,
                  converted.to,
                  converted.family,
                  converted.parameters,
                  converted.dtype,
                  base::human_bytes(static_cast<double>(converted.bytes))));
  print_text(
      options.to_hf.empty()
          ? text("Begin with it: weft train checkpoint.load={} checkpoint.finetune=true "
                 "dataset.path=PREFIX (token ids, as weft data import makes them)\n",
                 converted.to)
          : text("Begin with it: weft train checkpoint.pretrained_checkpoint={}\n", converted.to));
}

int run_convert(const ConvertOptions& options) {
  if (options.to_hf.empty() == options.to_weft.empty()) {
    throw base::ConfigError("one of --to-hf=OUT and --to-weft=OUT is needed");
  }
  try {
    show(options.to_weft.empty() ? to_huggingface(options) : to_checkpoint(options), options);
  } catch (const Stopped&) {
    print_failure({"stopped before the end: nothing was written"}, options.format);
    return interrupted_code();
  }
  return kGood;
}

}  // namespace

void add_checkpoint_convert(CLI::App& checkpoint, Action& chosen) {
  CLI::App* command = checkpoint.add_subcommand(
      "convert",
      "the weights of a checkpoint as a Hugging Face folder, and back, without a run");
  auto options = std::make_shared<ConvertOptions>();
  command
      ->add_option("DIR",
                   options->folder,
                   "a checkpoint (what checkpoint.save named, or one of its iter_ folders), or "
                   "with --to-weft a Hugging Face folder")
      ->required();
  CLI::Option* to_hf = command->add_option("--to-hf", options->to_hf, "Hugging Face folder to make")
                           ->type_name("OUT");
  command->add_option("--to-weft", options->to_weft, "folder to make, with a checkpoint of weights")
      ->type_name("OUT")
      ->excludes(to_hf);
  command
      ->add_option(
          "--dtype",
          options->dtype,
          "with --to-hf: fp32 takes the optimizer's fp32 weights of a run in bf16; without "
          "it weights keep their dtype")
      ->type_name("fp32|bf16");
  command
      ->add_option("--like",
                   options->like,
                   "with --to-hf: keep what config.json of this folder says beside the model: ids "
                   "of first and last tokens, positions, the balancing loss, use_cache; and copy "
                   "its tokenizer")
      ->type_name("HF_DIR");
  add_overwrite(*command,
                options->overwrite,
                "replace the model or the checkpoints that OUT holds");
  add_format(*command, options->format);
  command->footer(
      "OUT is made under another name and renamed when it is whole; what is there already is not "
      "replaced without --overwrite, and then only what belongs to a model or a checkpoint.\n"
      "Examples: weft checkpoint convert checkpoints --to-hf=model\n"
      "          weft checkpoint convert model --to-weft=checkpoints");
  on_chosen(*command, chosen, std::move(options), run_convert);
}

}  // namespace weft::cli
