// Heads, layer kinds and model size.
#include <algorithm>

#include "weft/derive/derived.h"
#include "weft/rules/judge.h"
#include "weft/rules/topics.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// Far below the values at which 64-bit counts would overflow.
constexpr double kMostParameters = 1e15;
constexpr std::int64_t kWidestProjection = 1 << 24;

bool heads_are_sound(const Judge& judge) {
  return judge.sound({"model.hidden_size",
                      "model.num_attention_heads",
                      "model.num_query_groups",
                      "model.kv_channels",
                      "model.qk_head_dim",
                      "model.qk_pos_emb_head_dim",
                      "model.v_head_dim"});
}

void judge_query_groups(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!heads_are_sound(judge)) return;
  if (model.multi_latent_attention && model.query_groups() != model.num_attention_heads) {
    judge.report("model.num_query_groups",
                 text("model.multi_latent_attention with model.num_query_groups = {} for {} heads",
                      model.query_groups(),
                      model.num_attention_heads),
                 "leave model.num_query_groups out");
    return;
  }
  if (model.num_attention_heads % model.query_groups() == 0) return;
  judge.report(
      "model.num_query_groups",
      text("model.num_attention_heads = {} is not divisible by model.num_query_groups = {}",
           model.num_attention_heads,
           model.query_groups()),
      "use a number of groups that divides the heads");
}

void judge_head_width(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!heads_are_sound(judge) || model.kv_channels || model.multi_latent_attention) return;
  if (model.hidden_size % model.num_attention_heads == 0) return;
  judge.report("model.num_attention_heads",
               text("model.hidden_size = {} is not divisible by model.num_attention_heads = {}",
                    model.hidden_size,
                    model.num_attention_heads),
               "set model.kv_channels, or sizes that divide");
}

void judge_even_head(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!heads_are_sound(judge)) return;
  const bool latent = model.multi_latent_attention;
  if (!latent && !model.kv_channels && model.hidden_size % model.num_attention_heads != 0) return;
  if (model.rotary_width() % 2 == 0 && model.rotary_width() != 0) return;
  const char* key = latent ? "model.qk_pos_emb_head_dim" : "model.kv_channels";
  judge.report(key,
               text("the width of one head{} is {}, but the rotary embedding turns pairs",
                    latent ? "'s turned part" : "",
                    model.rotary_width()),
               text("use an even {}", key));
}

void judge_projection(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!heads_are_sound(judge)) return;
  const std::int64_t latent =
      model.qk_head_dim + std::max(model.qk_pos_emb_head_dim, model.v_head_dim);
  const std::int64_t head = model.multi_latent_attention ? latent : model.head_dim();
  const std::int64_t all = model.num_attention_heads * head;
  if (all <= kWidestProjection) return;
  judge.report("model.num_attention_heads",
               text("model.num_attention_heads = {} of width {} make {} channels",
                    model.num_attention_heads,
                    head,
                    all),
               text("use at most {}", kWidestProjection));
}

void judge_layer_kinds(Judge& judge) {
  if (!judge.sound({"model.num_layers", "model.moe_layer_freq"})) return;
  const auto& kinds = judge.model().moe_layer_freq;
  const auto layers = static_cast<std::size_t>(judge.model().num_layers);
  if (kinds.size() == 1 && (kinds.front() >= 1 || layers == 1)) return;
  if (kinds.size() != layers) {
    judge.report("model.moe_layer_freq",
                 text("model.moe_layer_freq has {} entries{} for model.num_layers = {}",
                      kinds.size(),
                      kinds.size() == 1 ? text(" ({})", kinds.front()) : "",
                      layers),
                 "give one period of at least 1, or one 0 or 1 for each layer");
    return;
  }
  const auto odd = std::ranges::find_if(kinds, [](std::int64_t kind) { return kind > 1; });
  if (odd == kinds.end()) return;
  judge.report("model.moe_layer_freq",
               text("model.moe_layer_freq lists {} for layer {}", *odd, odd - kinds.begin()),
               "use 0 (dense) or 1 (MoE)");
}

void judge_parameters(Judge& judge) {
  if (!judge.sound_section("model.")) return;
  const double weights = derive::rough_parameters(judge.model());
  if (weights <= kMostParameters) return;
  judge.report("",
               text("the model could have {:.3g} parameters", weights),
               text("lower model.num_layers, the widths or model.num_moe_experts until it has at "
                    "most {:.3g}",
                    kMostParameters));
}

void judge_rope_fusion(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (!model.apply_rope_fusion || !model.multi_latent_attention) return;
  if (model.rope_type == RopeType::Yarn) return;
  judge.report(
      "model.apply_rope_fusion",
      text("model.apply_rope_fusion with model.multi_latent_attention and model.rope_type = "
           "{}",
           word(model.rope_type)),
      "set model.rope_type=yarn, or model.apply_rope_fusion=false");
}

void judge_stretch(Judge& judge) {
  const ModelConfig& model = judge.model();
  if (model.rope_type != RopeType::Yarn || model.beta_slow <= model.beta_fast) return;
  if (!judge.sound({"model.beta_fast", "model.beta_slow"})) return;
  judge.report(
      "model.beta_slow",
      text("model.beta_slow = {} is above model.beta_fast = {}", model.beta_slow, model.beta_fast),
      "use a smaller model.beta_slow");
}

constexpr Rule kModelRules[] = {
    {.id = "W2",
     .when = "model.num_attention_heads is not a multiple of model.num_query_groups, or heads of "
             "latent attention are grouped",
     .then = "refused",
     .why = "Every group of query heads shares one key and value head, so the groups are equal.",
     .example = "model.num_attention_heads=8 model.num_query_groups=3",
     .judge = judge_query_groups},
    {.id = "W3",
     .when = "model.kv_channels is null and model.hidden_size is not a multiple of the heads, "
             "without latent attention",
     .then = "refused",
     .why = "A head is hidden_size / num_attention_heads wide unless its width is given.",
     .example = "model.hidden_size=64 model.num_attention_heads=6",
     .judge = judge_head_width},
    {.id = "W4",
     .when = "the width of a head, or of its turned part, is odd",
     .then = "refused",
     .why = "The rotary embedding turns pairs of channels.",
     .example = "model.kv_channels=7",
     .judge = judge_even_head},
    {.id = "W5",
     .when = "all heads together are wider than 16777216 channels",
     .then = "refused",
     .why = "Counts stay far below where 64-bit arithmetic would overflow.",
     .example = "model.num_attention_heads=65536 model.kv_channels=65536",
     .judge = judge_projection},
    {.id = "W6",
     .when = "model.moe_layer_freq is neither one period nor a 0 or 1 for each layer",
     .then = "refused",
     .why = "Each layer is dense or MoE; a list must say so for all of them.",
     .example = "model.num_layers=3 model.moe_layer_freq=[1,0]",
     .judge = judge_layer_kinds},
    {.id = "W7",
     .when = "the model could have more than 1e15 parameters",
     .then = "refused",
     .why = "Counts stay far below where 64-bit arithmetic would overflow.",
     .example = "model.num_layers=10000 model.hidden_size=1048576 model.ffn_hidden_size=16777216",
     .judge = judge_parameters},
    {.id = "W70",
     .when = "model.rope_type = yarn with model.beta_slow above model.beta_fast",
     .then = "refused",
     .why = "Channels that turn fast keep their angle and slow ones are stretched; the two bounds "
            "are the ends of the ramp between them.",
     .example = "model.rope_type=yarn model.beta_slow=64",
     .judge = judge_stretch},
    {.id = "TC-116",
     .when = "model.apply_rope_fusion with MLA and model.rope_type other than yarn",
     .then = "refused",
     .why = "The fused rotation of compressed attention is written for YaRN.",
     .example = "model.multi_latent_attention=true model.apply_rope_fusion=true",
     .judge = judge_rope_fusion},
};

}  // namespace

std::span<const Rule> model_rules() { return kModelRules; }

}  // namespace weft::rules
