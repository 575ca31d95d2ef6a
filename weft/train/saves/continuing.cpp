#include "weft/train/saves/continuing.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::train {
namespace {

using base::text;

constexpr double kContinuedRate = 1e-5;
constexpr std::int64_t kContinuedSteps = 100;
constexpr std::int64_t kContinuedSequences = 16;

class Continuing {
 public:
  Continuing(const config::ModelConfig& folder, const IsChosen& is_chosen, config::Config& config)
      : folder_(folder), is_chosen_(is_chosen), config_(config) {}

  std::vector<config::Finding> set_all() {
    set_model();
    set_steps();
    set_rate();
    set_evaluation();
    return std::move(set_);
  }

 private:
  void set_model() {
    if (!is_chosen_("model.bf16")) {
      set("model.params_dtype", name_of(folder_.params_dtype), "the dtype of the folder");
    }
    const std::int64_t positions = folder_.max_position_embeddings.value_or(kContinuedTokens);
    set("model.seq_length",
        text("{}", std::min(kContinuedTokens, positions)),
        text("the least of {} and the {} positions of the model", kContinuedTokens, positions));
    const bool has_loss =
        std::ranges::any_of(folder_.moe_aux_loss_coeff, [](double coeff) { return coeff != 0; });
    const bool is_asked = is_chosen_("model.moe_aux_loss_coeff") ||
                          is_chosen_("model.moe_router_load_balancing_type");
    if (!has_loss || is_asked) return;
    config::Config whole;
    whole.model = folder_;
    for (const char* key : {"model.moe_router_load_balancing_type", "model.moe_aux_loss_coeff"}) {
      const config::Field& field = *config::find_field(key);
      set(key, value_text(field, whole), "the balancing loss of the folder");
    }
  }

  void set_steps() {
    set("train.train_iters", text("{}", kContinuedSteps), "where no number of steps is said");
    set("train.global_batch_size",
        text("{}", kContinuedSequences),
        "where no number of sequences is said");
  }

  void set_rate() {
    const std::int64_t steps = config_.train.train_iters;
    set("optimizer.lr", text("{:g}", kContinuedRate), "small, for weights that are trained");
    if (!is_chosen_("optimizer.lr")) {
      set("optimizer.min_lr", text("{:g}", kContinuedRate / 10), "a tenth of the rate");
    }
    set("scheduler.lr_warmup_iters",
        text("{}", std::max<std::int64_t>(steps / 10, 1)),
        "a tenth of the steps, while the moments of the optimizer grow");
  }

  // Mock tokens have no meaningful held-out data.
  void set_evaluation() {
    const config::DatasetConfig& data = config_.dataset;
    const bool is_held_out = data.kind != config::DataKind::Mock && data.split.empty() &&
                             data.blend_per_split.empty() && data.eval_fraction > 0;
    if (!is_held_out) return;
    set("train.eval_interval",
        text("{}", std::max<std::int64_t>(config_.train.train_iters / 4, 1)),
        "held-out data before the first step and four times in the run");
  }

  void set(std::string_view key, std::string_view value, std::string why) {
    if (is_chosen_(key)) return;
    const config::Field* field = config::find_field(key);
    CHECK(field != nullptr, "'{}' is no key", key);
    const base::Json from = field->get(config_);
    CHECK(field->set(config_, config::written_from_text(*field, value)), "{} = {}", key, value);
    const base::Json to = field->get(config_);
    if (from == to) return;
    set_.push_back({.id = "D3",
                    .key = std::string(key),
                    .from = from,
                    .to = to,
                    .message = std::move(why),
                    .fix = ""});
  }

  const config::ModelConfig& folder_;
  const IsChosen& is_chosen_;
  config::Config& config_;
  std::vector<config::Finding> set_;
};

}  // namespace

std::vector<config::Finding> set_continuing(const config::ModelConfig& folder,
                                            const IsChosen& is_chosen,
                                            config::Config& config) {
  return Continuing(folder, is_chosen, config).set_all();
}

}  // namespace weft::train
