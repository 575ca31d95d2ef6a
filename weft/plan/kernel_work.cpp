#include "weft/plan/kernel_work.h"

#include "weft/base/casts.h"
#include "weft/derive/layer_kind.h"

namespace weft::plan {
namespace {

using base::number;
using config::ModelConfig;
using schedule::Direction;
using schedule::Part;
using schedule::Piece;

constexpr double kElement = 2;     // bytes of a bf16 value
constexpr double kAccumulate = 8;  // of a weight gradient: an fp32 sum is read and written

// Bytes moved to cast one value for a product and for its weight gradient, whose layout differs.
// One scale a tensor wants the values read once more, and so does a fp4 tensor's.
double cast_bytes(Number number) {
  switch (number) {
    case Number::Bf16:
      return 0;
    case Number::Fp8:
      return 6;
    case Number::Mxfp8:
      return 4;
    case Number::Nvfp4:
      return 5;
  }
  return 0;
}

double bytes_of_value(Number number) {
  switch (number) {
    case Number::Bf16:
      return 2;
    case Number::Fp8:
    case Number::Mxfp8:
      return 1;
    case Number::Nvfp4:
      return 0.56;
  }
  return 2;
}

// How a product gets its input in few bits.
enum class Cast {
  Alone,  // by a kernel
  Fused,  // by what makes the input: the norm before it, or a fused feed-forward
};

class KernelList {
 public:
  KernelList(const ModelConfig& model, const Workload& work) : model_(model), work_(work) {}

  std::vector<Kernel> take() { return std::move(kernels_); }

  void attention(std::int64_t layer);
  void feed_forward(Piece piece, double tokens, double width);
  void route();
  void rows();
  void experts();
  void embed();
  void head();
  void mtp();

 private:
  // Reads and writes of `values` bf16 values, forward and in the backward.
  void memory(Piece piece,
              Part part,
              double forward_values,
              double backward_values,
              double launches = 1) {
    add({.piece = piece,
         .part = part,
         .direction = Direction::F,
         .bytes = forward_values * kElement,
         .launches = launches});
    add({.piece = piece,
         .part = part,
         .direction = Direction::D,
         .bytes = backward_values * kElement,
         .launches = launches});
  }

  // Launches of small kernels that move next to nothing.
  void small(Piece piece, Part part, double forward, double backward) {
    for (double i = 0; i < forward; ++i) add({.piece = piece, .part = part});
    for (double i = 0; i < backward; ++i) {
      add({.piece = piece, .part = part, .direction = Direction::D});
    }
  }

  struct Shape {
    double m = 0, n = 0, k = 0, groups = 1;
  };
  void product(Piece piece, Part part, Shape of, Number in, Cast cast) {
    const double rows = of.m * of.groups, value = bytes_of_value(in);
    const double weights = of.n * of.k * of.groups;
    Kernel kernel{.piece = piece,
                  .part = part,
                  .direction = Direction::F,
                  .kind = KernelKind::Product,
                  .number = in,
                  .m = of.m,
                  .n = of.n,
                  .k = of.k,
                  .groups = of.groups};
    kernel.bytes = value * (rows * of.k + weights) + kElement * rows * of.n;
    // Without the fused kernels a library is called for each group.
    if (of.groups > 1 && !work_.fuses_experts) kernel.launches = 1 + of.groups * kGroupLaunch;
    add(kernel);
    kernel.direction = Direction::D;
    std::swap(kernel.n, kernel.k);
    kernel.bytes = value * (rows * of.n + weights) + kElement * rows * of.k;
    add(kernel);
    kernel.direction = Direction::W;
    kernel.m = of.n;
    kernel.n = of.k;
    kernel.k = of.m;
    kernel.bytes = value * rows * (of.n + of.k) + kAccumulate * weights;
    add(kernel);
    casts(piece, part, rows * of.k, rows * of.n, in, cast, of.groups);
  }

  void
  casts(Piece piece, Part part, double in, double out, Number number, Cast cast, double groups) {
    const double bytes = cast_bytes(number);
    if (bytes == 0) return;
    const double launches = groups > 1 ? 1 + groups * kGroupLaunch : 2;
    if (cast == Cast::Alone) {
      add({.piece = piece,
           .part = part,
           .direction = Direction::F,
           .bytes = bytes * in,
           .launches = launches});
    }
    if (cast == Cast::Alone || groups == 1) {
      add({.piece = piece,
           .part = part,
           .direction = Direction::D,
           .bytes = bytes * out,
           .launches = launches});
    }
  }

  void add(const Kernel& kernel) { kernels_.push_back(kernel); }

  void grouped(std::int64_t layer);
  void latent();
  void delta_net();
  void core(double width_of_scores, double width_of_values, double seen);

  // A library's call for one of several groups, of a launch with all that a program does around it.
  static constexpr double kGroupLaunch = 0.25;

  const ModelConfig& model_;
  const Workload& work_;
  std::vector<Kernel> kernels_;
};

// Scores and values over the tokens that a query sees, two operations each. Going back, five
// products take the place of two.
void KernelList::core(double scores, double values, double seen) {
  const double flops = 2 * work_.tokens * seen * (scores + values) / work_.tp;
  add({.piece = Piece::Attention,
       .part = Part::Core,
       .kind = KernelKind::Attention,
       .flops = flops,
       .launches = 3});
  add({.piece = Piece::Attention,
       .part = Part::Core,
       .direction = Direction::D,
       .kind = KernelKind::Attention,
       .flops = 2.5 * flops,
       .launches = 4});
}

void KernelList::grouped(std::int64_t layer) {
  const double h = number(model_.hidden_size);
  const double q = number(model_.query_width()), kv = number(model_.key_width());
  const double gate = model_.attention_output_gate ? q : 0;
  product(Piece::Attention,
          Part::Qkv,
          {.m = work_.tokens, .n = (q + gate + 2 * kv) / work_.tp, .k = h},
          work_.number,
          Cast::Fused);
  const double turned = work_.tokens * (q + kv) / work_.tp;
  memory(Piece::Attention, Part::Turn, 2 * turned, 2 * turned, 2);
  if (model_.qk_layernorm != config::QkNorm::None) {
    memory(Piece::Attention, Part::Turn, 2 * turned, 3 * turned, 2);
  }
  double seen = work_.sequence / 2;
  if (derive::is_windowed(model_, layer)) {
    seen = std::min(seen, number(model_.window_size.value_or(model_.seq_length)));
  }
  core(q, q, seen);
  if (gate > 0)
    memory(Piece::Attention,
           Part::Proj,
           3 * work_.tokens * q / work_.tp,
           5 * work_.tokens * q / work_.tp,
           2);
  product(Piece::Attention,
          Part::Proj,
          {.m = work_.tokens, .n = h, .k = q / work_.tp},
          work_.number,
          Cast::Alone);
}

void KernelList::latent() {
  const double h = number(model_.hidden_size),
               heads = number(model_.num_attention_heads) / work_.tp;
  const double wide = number(model_.latent_head_dim()), value = number(model_.v_head_dim);
  const double rank = number(model_.kv_lora_rank), turned = number(model_.qk_pos_emb_head_dim);
  const double in = work_.tokens;
  if (model_.q_lora_rank) {
    const double queries = number(*model_.q_lora_rank);
    product(Piece::Attention,
            Part::Qkv,
            {.m = in, .n = queries, .k = h},
            work_.number,
            Cast::Fused);
    memory(Piece::Attention, Part::Norm, 2 * in * queries, 3 * in * queries);
    product(Piece::Attention,
            Part::Expand,
            {.m = in, .n = heads * wide, .k = queries},
            work_.number,
            Cast::Fused);
  } else {
    product(Piece::Attention,
            Part::Qkv,
            {.m = in, .n = heads * wide, .k = h},
            work_.number,
            Cast::Fused);
  }
  product(Piece::Attention,
          Part::Qkv,
          {.m = in, .n = rank + turned, .k = h},
          work_.number,
          Cast::Fused);
  memory(Piece::Attention, Part::Norm, 2 * in * rank, 3 * in * rank);
  product(Piece::Attention,
          Part::Expand,
          {.m = in, .n = heads * (number(model_.qk_head_dim) + value), .k = rank},
          work_.number,
          Cast::Fused);
  // Rotation, and the copies that put turned and unturned channels side by side.
  memory(Piece::Attention, Part::Heads, 3 * in * heads * wide, 4 * in * heads * wide, 4);
  core(heads * work_.tp * wide, heads * work_.tp * value, work_.sequence / 2);
  product(Piece::Attention,
          Part::Proj,
          {.m = in, .n = h, .k = heads * value},
          work_.number,
          Cast::Alone);
}

// Chunks of linear attention are small products between reads and writes: memory is their limit.
void KernelList::delta_net() {
  const double h = number(model_.hidden_size);
  const double key = number(model_.linear_num_key_heads * model_.linear_key_head_dim);
  const double value = number(model_.linear_num_value_heads * model_.linear_value_head_dim);
  const double scalars = 2 * number(model_.linear_num_value_heads);
  const double in = work_.tokens, width = (2 * key + 2 * value) / work_.tp;
  product(Piece::Attention,
          Part::Qkv,
          {.m = in, .n = (2 * key + 2 * value + scalars) / work_.tp, .k = h},
          work_.number,
          Cast::Fused);
  memory(Piece::Attention, Part::Core, 14 * in * width, 26 * in * width, 12);
  product(Piece::Attention,
          Part::Proj,
          {.m = in, .n = h, .k = value / work_.tp},
          work_.number,
          Cast::Alone);
}

void KernelList::attention(std::int64_t layer) {
  const double stream = work_.own_tokens * number(model_.hidden_size);
  memory(Piece::Attention, Part::Norm, 2 * stream, 4 * stream);
  switch (derive::attention_of(model_, layer)) {
    case derive::AttentionKind::Grouped:
      grouped(layer);
      break;
    case derive::AttentionKind::Latent:
      latent();
      break;
    case derive::AttentionKind::DeltaNet:
      delta_net();
      break;
  }
  memory(Piece::Attention, Part::Proj, 3 * stream, stream);  // the residual stream
  small(Piece::Attention, Part::None, 4, 8);
}

void KernelList::feed_forward(Piece piece, double tokens, double width) {
  const double h = number(model_.hidden_size), share = width / work_.tp;
  const double stream = work_.own_tokens * h;
  if (piece == Piece::Mlp) memory(piece, Part::Norm, 2 * stream, 4 * stream);
  product(piece, Part::Fc1, {.m = tokens, .n = 2 * share, .k = h}, work_.number, Cast::Fused);
  memory(piece, Part::Act, 3 * tokens * share, 5 * tokens * share);
  product(piece, Part::Fc2, {.m = tokens, .n = h, .k = share}, work_.number, Cast::Alone);
  if (piece == Piece::Mlp) memory(piece, Part::Add, 3 * stream, stream);
  small(piece, Part::None, 2, 4);
}

// The router is in fp32: its input is written and read once more at twice the width.
void KernelList::route() {
  const double h = number(model_.hidden_size), experts = number(model_.experts());
  memory(Piece::Route, Part::Norm, 2 * work_.own_tokens * h, 4 * work_.own_tokens * h);
  memory(Piece::Route, Part::Gate, 5 * work_.own_tokens * h, 6 * work_.own_tokens * h, 3);
  memory(Piece::Route,
         Part::Choose,
         12 * work_.own_tokens * experts,
         8 * work_.own_tokens * experts,
         2);
  small(Piece::Route, Part::Choose, 12, 12);
}

// Rows into the order of the wire, into that of the experts, and back. Dispatchers that know the
// experts do one of the two copies on each side themselves.
void KernelList::rows() {
  const double h = number(model_.hidden_size);
  const double rows = work_.rows * h, stream = work_.own_tokens * h;
  const double sorted = work_.local_experts > 1 && !work_.is_flex ? 2 * rows : 0;
  if (work_.is_flex) {
    memory(Piece::Permute, Part::None, 2 * rows, 2 * rows, 3);
    memory(Piece::Merge, Part::None, 2 * rows + 3 * stream, 2 * rows + stream, 3);
    small(Piece::Counts, Part::None, 8, 0);
    small(Piece::Dispatch, Part::None, 4, 4);
    small(Piece::Combine, Part::None, 3, 3);
    return;
  }
  memory(Piece::Permute, Part::None, stream + rows + sorted, stream + rows + sorted, 5);
  memory(Piece::Merge, Part::None, rows + 4 * stream + sorted, 2 * rows + stream + sorted, 5);
  small(Piece::Counts, Part::None, 14, 0);
  small(Piece::Dispatch, Part::None, 6, 6);
  small(Piece::Combine, Part::None, 4, 4);
}

void KernelList::experts() {
  const double h = number(model_.hidden_size), width = number(model_.expert_shard_width());
  const double each = work_.rows / work_.local_experts;
  const Cast cast = work_.fuses_experts ? Cast::Fused : Cast::Alone;
  product(Piece::Experts,
          Part::Fc1,
          {.m = each, .n = 2 * width, .k = h, .groups = work_.local_experts},
          work_.number,
          cast);
  if (!work_.fuses_experts) {
    memory(Piece::Experts, Part::Act, 3 * work_.rows * width, 6 * work_.rows * width, 3);
    small(Piece::Experts, Part::Act, 4, 6);
  }
  product(Piece::Experts,
          Part::Fc2,
          {.m = each, .n = h, .k = width, .groups = work_.local_experts},
          work_.number,
          cast);
}

void KernelList::embed() {
  const double stream = work_.own_tokens * number(model_.hidden_size);
  memory(Piece::Embed, Part::None, 2 * stream, 6 * stream, 4);
}

// Logits are written and read, in fp32 once, and their gradient takes their place.
void KernelList::head() {
  const double h = number(model_.hidden_size), vocabulary = number(model_.vocab_size) / work_.tp;
  const double stream = work_.own_tokens * h, logits = work_.tokens * vocabulary;
  memory(Piece::Head, Part::Norm, 2 * stream, 4 * stream);
  product(Piece::Head,
          Part::Logits,
          {.m = work_.tokens, .n = vocabulary, .k = h},
          Number::Bf16,
          Cast::Alone);
  memory(Piece::Head, Part::Loss, 3 * logits, 2 * logits, 8);
}

void KernelList::mtp() {
  const double h = number(model_.hidden_size), stream = work_.own_tokens * h;
  memory(Piece::Mlp, Part::Norm, 10 * stream, 14 * stream, 6);
  product(Piece::Mlp,
          Part::Fc1,
          {.m = work_.tokens, .n = h / work_.tp, .k = 2 * h},
          work_.number,
          Cast::Alone);
}

}  // namespace

std::vector<Kernel> layer_kernels(const config::Config& config,
                                  const Workload& work,
                                  std::int64_t layer) {
  const ModelConfig& model = config.model;
  KernelList list(model, work);
  list.attention(layer);
  if (!model.is_moe_layer(layer)) {
    list.feed_forward(Piece::Mlp, work.tokens, number(model.dense_width()));
    return list.take();
  }
  list.route();
  list.rows();
  list.experts();
  if (const std::int64_t width = derive::shared_expert_width(model); width > 0) {
    list.feed_forward(Piece::Shared, work.tokens, number(width));
  }
  return list.take();
}

std::vector<Kernel> embed_kernels(const config::Config& config, const Workload& work) {
  KernelList list(config.model, work);
  list.embed();
  return list.take();
}

std::vector<Kernel> head_kernels(const config::Config& config, const Workload& work) {
  KernelList list(config.model, work);
  list.head();
  return list.take();
}

std::vector<Kernel> mtp_kernels(const config::Config& config, const Workload& work) {
  KernelList list(config.model, work);
  list.mtp();
  return list.take();
}

}  // namespace weft::plan
