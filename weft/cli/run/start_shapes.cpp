#include "weft/cli/run/start_shapes.h"

#include <algorithm>
#include <array>

#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/output.h"
#include "weft/cli/run/start_model.h"
#include "weft/config/field.h"
#include "weft/train/saves/continuing.h"
#include "weft/train/weights.h"

namespace weft::cli {
namespace {

using base::text;
using config::Config;

// Further keys decided by a folder, in families that the engine does not compute.
constexpr std::array kShapeKeys = std::to_array<std::string_view>({
    "model.layernorm_zero_centered_gamma",
    "model.add_bias_linear",
    "model.add_qkv_bias",
    "model.attention_output_gate",
    "model.softmax_type",
    "model.window_size",
    "model.window_attn_skip_freq",
    "model.activation_func",
    "model.activation_func_clamp_value",
    "model.glu_linear_offset",
    "model.rotary_percent",
    "model.linear_attention_freq",
    "model.linear_conv_kernel_dim",
    "model.linear_key_head_dim",
    "model.linear_value_head_dim",
    "model.linear_num_key_heads",
    "model.linear_num_value_heads",
    "model.mtp_num_layers",
});

void copy_keys(std::span<const std::string_view> keys, const Config& from, Config& to) {
  for (const std::string_view key : keys) config::find_field(key)->copy(from, to);
}

rules::Missing missing_weights(const std::string& part, const std::string& start) {
  return {.part = part,
          .keys = {"checkpoint.pretrained_checkpoint"},
          .message = text("not built yet: reading {} (checkpoint.pretrained_checkpoint = {})",
                          part,
                          base::shown(start)),
          .fix =
              "plan, check and memory need its shapes alone; train without the folder, or from "
              "one whose weights are read"};
}

}  // namespace

StartShapes start_shapes(const words::Resolution& run) {
  StartShapes start{.config = run.config, .automatic = {}, .remarks = {}, .missing = {}};
  const std::string& folder = run.config.checkpoint.pretrained_checkpoint;
  if (folder.empty()) {
    StartedRun begun = started(run, run.config);
    start.config = std::move(begun.config);
    start.automatic = std::move(begun.automatic);
    return start;
  }
  const std::string reason =
      text("the model comes from checkpoint.pretrained_checkpoint='{}'", folder);
  refuse_keys(run, train::kFolderModelKeys, reason);
  checkpoint::ModelShapes shapes = checkpoint::read_model_shapes(folder);
  Config read;
  read.model = shapes.model;
  copy_keys(train::kFolderModelKeys, read, start.config);
  start.remarks = std::move(shapes.remarks);
  if (shapes.unread.empty()) {
    // As in a run that reads the weights.
    if (const auto ahead = shapes.model.mtp_num_layers) {
      start.remarks.push_back(
          text("'{}': {} for tokens further ahead, left out: multi-token "
               "prediction is not built yet",
               folder,
               base::counted(*ahead, "layer")));
    }
  } else {
    refuse_keys(run, kShapeKeys, reason);
    copy_keys(kShapeKeys, read, start.config);
    for (const std::string& part : shapes.unread) {
      start.missing.push_back(missing_weights(part, folder));
    }
  }
  const auto is_chosen = [&](std::string_view key) { return run.is_chosen(key); };
  start.automatic = train::set_continuing(shapes.model, is_chosen, start.config);
  return start;
}

bool is_decided_by_folder(std::string_view key) {
  return std::ranges::find(kShapeKeys, key) != kShapeKeys.end() ||
         std::ranges::find(train::kFolderModelKeys, key) != train::kFolderModelKeys.end();
}

config::Config with_start_shapes(const words::Resolution& run) {
  StartShapes start = start_shapes(run);
  for (const std::string& remark : start.remarks) print_warning(remark);
  for (const config::Finding& set : start.automatic) {
    if (set.key != "model.seq_length") continue;
    print_warning(text("model.seq_length={}: {}", set.to.dump(), set.message));
  }
  return std::move(start.config);
}

}  // namespace weft::cli
