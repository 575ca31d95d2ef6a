#include "weft/checkpoint/huggingface/huggingface_tensors.h"

#include <functional>
#include <numeric>

#include "weft/base/text.h"
#include "weft/derive/layer_kind.h"

namespace weft::checkpoint {
namespace {

using base::text;

std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Norm widths of queries and keys; 0: no norm.
struct QkWidths {
  std::int64_t query = 0;
  std::int64_t key = 0;
};

QkWidths qk_widths(const config::ModelConfig& model) {
  switch (model.qk_layernorm) {
    case config::QkNorm::None:
      return {};
    case config::QkNorm::Head:
      return {model.head_dim(), model.head_dim()};
    case config::QkNorm::Projection:
      return {model.query_width(), model.key_width()};
  }
  return {};
}

class TensorTable {
 public:
  TensorTable(const config::ModelConfig& model, Family family, ExpertNames experts)
      : model_(model), hidden_(model.hidden_size), family_(family), experts_(experts) {}

  std::vector<HuggingFaceTensor> build() {
    whole("model.embed_tokens.weight", {model_.vocab_size, hidden_}, "embedding.weight");
    for (std::int64_t i = 0; i < model_.num_layers; ++i) {
      theirs_ = text("model.layers.{}.", i);
      ours_ = text("layers.{}.", i);
      if (model_.multi_latent_attention) {
        add_latent_attention();
      } else {
        add_attention();
      }
      if (model_.is_moe_layer(i)) {
        add_moe();
      } else {
        add_dense();
      }
    }
    theirs_.clear();
    ours_.clear();
    whole("model.norm.weight", {hidden_}, "head.norm.weight");
    if (!model_.share_embeddings_and_output_weights) {
      whole("lm_head.weight", {model_.vocab_size, hidden_}, "head.weight");
    }
    return std::move(rows_);
  }

 private:
  std::int64_t part(const std::string& name,
                    Shape shape,
                    const std::string& parameter,
                    std::int64_t begin) {
    const std::int64_t end = begin + product(shape);
    rows_.push_back({theirs_ + name, std::move(shape), ours_ + parameter, begin});
    return end;
  }
  void whole(const std::string& name, Shape shape, const std::string& parameter) {
    part(name, std::move(shape), parameter, 0);
  }

  void add_latent_attention() {
    const std::int64_t heads = model_.num_attention_heads, rank = model_.kv_lora_rank;
    const std::int64_t query = heads * model_.latent_head_dim(), value = heads * model_.v_head_dim;
    const std::int64_t first = model_.q_lora_rank.value_or(query);
    const char* query_down = model_.q_lora_rank ? "q_a_proj" : "q_proj";
    whole("input_layernorm.weight", {hidden_}, "attention.norm.weight");
    const std::int64_t at =
        part(text("self_attn.{}.weight", query_down), {first, hidden_}, "attention.down.weight", 0);
    part("self_attn.kv_a_proj_with_mqa.weight",
         {rank + model_.qk_pos_emb_head_dim, hidden_},
         "attention.down.weight",
         at);
    if (model_.q_lora_rank) {
      whole("self_attn.q_a_layernorm.weight", {first}, "attention.q_norm.weight");
      whole("self_attn.q_b_proj.weight", {query, first}, "attention.q_up.weight");
    }
    whole("self_attn.kv_a_layernorm.weight", {rank}, "attention.kv_norm.weight");
    whole("self_attn.kv_b_proj.weight",
          {heads * model_.qk_head_dim + value, rank},
          "attention.kv_up.weight");
    whole("self_attn.o_proj.weight", {hidden_, value}, "attention.proj.weight");
  }

  void add_attention() {
    const std::int64_t query = model_.query_width(), key = model_.key_width();
    whole("input_layernorm.weight", {hidden_}, "attention.norm.weight");
    std::int64_t at = part("self_attn.q_proj.weight", {query, hidden_}, "attention.qkv.weight", 0);
    at = part("self_attn.k_proj.weight", {key, hidden_}, "attention.qkv.weight", at);
    part("self_attn.v_proj.weight", {key, hidden_}, "attention.qkv.weight", at);
    const QkWidths widths = qk_widths(model_);
    if (widths.query > 0) {
      whole("self_attn.q_norm.weight", {widths.query}, "attention.q_norm.weight");
      whole("self_attn.k_norm.weight", {widths.key}, "attention.k_norm.weight");
    }
    whole("self_attn.o_proj.weight", {hidden_, query}, "attention.proj.weight");
  }

  void add_dense() {
    const std::int64_t width = model_.dense_width();
    whole("post_attention_layernorm.weight", {hidden_}, "mlp.norm.weight");
    const std::int64_t up = part("mlp.gate_proj.weight", {width, hidden_}, "mlp.fc1.weight", 0);
    part("mlp.up_proj.weight", {width, hidden_}, "mlp.fc1.weight", up);
    whole("mlp.down_proj.weight", {hidden_, width}, "mlp.fc2.weight");
  }

  void add_shared_experts() {
    const std::int64_t width = derive::shared_expert_width(model_);
    if (width == 0) return;
    const std::string theirs = "mlp.shared_experts.", ours = "shared.fc1.weight";
    const std::int64_t up = part(theirs + "gate_proj.weight", {width, hidden_}, ours, 0);
    part(theirs + "up_proj.weight", {width, hidden_}, ours, up);
    whole(theirs + "down_proj.weight", {hidden_, width}, "shared.fc2.weight");
  }

  void add_moe() {
    const bool is_block = family_ == Family::Mixtral && experts_ == ExpertNames::Separate;
    const std::string block = is_block ? "block_sparse_moe." : "mlp.";
    const std::int64_t experts = model_.experts(), width = model_.expert_width();
    whole("post_attention_layernorm.weight", {hidden_}, "route.norm.weight");
    whole(block + "gate.weight", {experts, hidden_}, "route.router.weight");
    if (model_.moe_router_enable_expert_bias) {
      whole(block + "gate.e_score_correction_bias", {experts}, "route.bias");
      rows_.back().trained = false;
    }
    add_shared_experts();
    if (experts_ == ExpertNames::Stacked) {
      whole("mlp.experts.gate_up_proj", {experts, 2 * width, hidden_}, "experts.fc1.weight");
      whole("mlp.experts.down_proj", {experts, hidden_, width}, "experts.fc2.weight");
      return;
    }
    std::int64_t fc1 = 0, fc2 = 0;
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::string expert = text("{}experts.{}.", block, e);
      const auto name = [&](const char* mixtral, const char* others) {
        return text("{}{}.weight", expert, is_block ? mixtral : others);
      };
      fc1 = part(name("w1", "gate_proj"), {width, hidden_}, "experts.fc1.weight", fc1);
      fc1 = part(name("w3", "up_proj"), {width, hidden_}, "experts.fc1.weight", fc1);
      fc2 = part(name("w2", "down_proj"), {hidden_, width}, "experts.fc2.weight", fc2);
    }
  }

  const config::ModelConfig& model_;
  std::int64_t hidden_;
  Family family_;
  ExpertNames experts_;
  std::string theirs_;  // prefix of the current layer
  std::string ours_;
  std::vector<HuggingFaceTensor> rows_;
};

}  // namespace

std::int64_t Parameter::elements() const { return product(shape); }
std::int64_t HuggingFaceTensor::elements() const { return product(shape); }

std::vector<HuggingFaceTensor> huggingface_tensors(const config::ModelConfig& model,
                                                   Family family,
                                                   ExpertNames experts) {
  return TensorTable(model, family, experts).build();
}

// Sums stacked tensors back into parameters: they split only q, k and v, or gate and up, which are
// rows of one matrix.
std::vector<Parameter> parameters(const config::ModelConfig& model) {
  std::vector<Parameter> all;
  for (HuggingFaceTensor& row :
       huggingface_tensors(model, Family::Qwen3Moe, ExpertNames::Stacked)) {
    if (row.begin == 0) {
      all.push_back({std::move(row.parameter), std::move(row.shape)});
    } else {
      all.back().shape[0] += row.shape[0];
    }
  }
  return all;
}

}  // namespace weft::checkpoint
