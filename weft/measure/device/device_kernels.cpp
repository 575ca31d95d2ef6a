#include "weft/measure/device/device_kernels.h"

#include <algorithm>
#include <set>

#include "weft/base/casts.h"
#include "weft/base/random.h"
#include "weft/base/text.h"
#include "weft/kernels/kernels.h"

namespace weft::measure {
namespace {

using base::at;
using base::number;
using base::text;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr double kHalf = 2, kFloat = 4;  // bytes of bf16, and of fp32 and int32
constexpr float kEpsilon = 1e-6f;

std::string by(std::int64_t rows, std::int64_t columns) { return text("{} x {}", rows, columns); }

class KernelsBench {
 public:
  KernelsBench(DeviceTimer& timer, const KernelShapes& shapes, const NoteOperation& note)
      : timer_(timer), s_(shapes), note_(note), stream_(timer.stream()) {}

  std::vector<DeviceRate> run() {
    norm("rms_norm", s_.hidden, s_.hidden);
    norm("head_norm", s_.heads * s_.head_width, s_.head_width);
    rotary();
    add();
    swiglu();
    route();
    rows();
    embedding();
    cross_entropy();
    optimizer();
    return std::move(rates_);
  }

 private:
  template <typename Work>
  void measure(const std::string& name, const std::string& shape, double bytes, const Work& work) {
    note_(name);
    rates_.push_back({.name = name,
                      .shape = shape,
                      .unit = WorkUnit::Byte,
                      .work = bytes,
                      .seconds = timer_.seconds_of(work)});
  }

  Tensor half(const Shape& shape) { return timer_.random(DType::BF16, shape); }
  Tensor single(const Shape& shape) { return timer_.random(DType::F32, shape); }
  Tensor integers(const Shape& shape) { return timer_.zeros(DType::I32, shape); }

  std::vector<std::int32_t> drawn_ids(std::int64_t count) const {
    std::vector<std::int32_t> ids(at(count));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<std::int32_t>(base::uniform(kIds, i) * number(s_.vocabulary));
    }
    return ids;
  }
  Tensor ids_tensor(const std::vector<std::int32_t>& ids) {
    return timer_.of<std::int32_t>(DType::I32, {std::ssize(ids)}, ids);
  }

  void norm(const std::string& name, std::int64_t columns, std::int64_t width) {
    const std::int64_t tokens = s_.tokens;
    const Tensor x = half({tokens, columns}), dy = half({tokens, columns});
    const Tensor y = timer_.empty(DType::BF16, {tokens, columns});
    const Tensor w = half({width}), dw = timer_.zeros(DType::F32, {width});
    const Tensor rstd = timer_.empty(DType::F32, {tokens, columns / width});
    const double matrix = number(x.bytes()), scales = number(rstd.bytes());
    measure(name + "_forward", by(tokens, columns), 2 * matrix + scales, [&] {
      kernels::rms_norm_forward(stream_, y, rstd, x, w, kEpsilon);
    });
    // Rows, with the gradient of the residual.
    const Tensor residual = columns == width ? half({tokens, columns}) : Tensor{};
    measure(name + "_dgrad",
            by(tokens, columns),
            (residual.defined() ? 4 : 3) * matrix + scales,
            [&] { kernels::rms_norm_dgrad(stream_, y, dy, x, w, rstd, residual); });
    measure(name + "_wgrad", by(tokens, columns), 2 * matrix + scales, [&] {
      kernels::rms_norm_wgrad(stream_, dw, dy, x, rstd, kernels::Write::Assign);
    });
  }

  void rotary() {
    const std::int64_t columns = s_.heads * s_.head_width;
    const Tensor x = half({s_.tokens, columns});
    const Tensor table = timer_.empty(DType::F32, {s_.sequence, s_.head_width});
    kernels::rotary_table(stream_, table, {});
    const double bytes = 2 * number(x.bytes()) + number(table.bytes());
    measure("rotary_forward", by(s_.tokens, columns), bytes, [&] {
      kernels::rotary_forward(stream_, x, x, table);
    });
    measure("rotary_dgrad", by(s_.tokens, columns), bytes, [&] {
      kernels::rotary_dgrad(stream_, x, x, table);
    });
  }

  void add() {
    const Shape shape{s_.tokens, s_.hidden};
    const Tensor a = half(shape), b = half(shape), y = timer_.empty(DType::BF16, shape);
    measure("add", by(s_.tokens, s_.hidden), 3 * number(a.bytes()), [&] {
      kernels::add(stream_, y, a, b);
    });
  }

  void swiglu() {
    const std::int64_t slots = s_.tokens * s_.topk, width = s_.expert_width;
    const Tensor h = half({slots, 2 * width}), p = single({slots}), dy = half({slots, width});
    const Tensor y = timer_.empty(DType::BF16, {slots, width});
    const Tensor dh = timer_.empty(DType::BF16, {slots, 2 * width});
    const Tensor dp = timer_.empty(DType::F32, {slots});
    const double weights = number(p.bytes());
    measure("weighted_swiglu_forward",
            by(slots, width),
            number(h.bytes() + y.bytes()) + weights,
            [&] { kernels::weighted_swiglu_forward(stream_, y, h, p); });
    measure("weighted_swiglu_dgrad",
            by(slots, width),
            number(dy.bytes() + h.bytes() + dh.bytes()) + 2 * weights,
            [&] { kernels::weighted_swiglu_dgrad(stream_, dh, dp, dy, h, p); });
  }

  void route() {
    const std::int64_t tokens = s_.tokens, experts = s_.experts, k = s_.topk;
    const Tensor logits = single({tokens, experts}), dp = single({tokens, k});
    const Tensor p = timer_.empty(DType::F32, {tokens, k}), chosen = integers({tokens, k});
    const Tensor dlogits = timer_.empty(DType::F32, {tokens, experts});
    const Tensor counts = timer_.zeros(DType::I64, {1, experts});
    const Tensor loss = timer_.zeros(DType::F32, {1});
    const double all = number(logits.bytes()), slots = number(tokens * k);
    const std::string shape = by(tokens, experts);
    measure("top_k_forward", shape, all + 2 * kFloat * slots, [&] {
      kernels::top_k_forward(stream_, p, chosen, logits, Tensor(), {});
    });
    measure("top_k_dgrad", shape, 2 * all + 3 * kFloat * slots, [&] {
      kernels::top_k_dgrad(stream_, dlogits, dp, p, chosen, logits, {});
    });
    measure("count_experts", by(tokens, k), kFloat * slots, [&] {
      kernels::count_experts(stream_, counts, chosen, {});
    });
    measure("balance_loss_forward", shape, all, [&] {
      kernels::balance_loss_forward(stream_, loss, logits, counts, {}, kernels::Score::Softmax);
    });
    measure("balance_loss_dgrad", shape, 2 * all, [&] {
      kernels::balance_loss_dgrad(stream_,
                                  dlogits,
                                  logits,
                                  counts,
                                  {},
                                  kernels::Score::Softmax,
                                  0.001f);
    });
    chosen_ = chosen;
  }

  // Permute must read each token's row once and write it for each slot; un-permute reads these rows
  // and writes one per token.
  void rows() {
    const std::int64_t slots = s_.tokens * s_.topk;
    const Tensor x_TD = half({s_.tokens, s_.hidden});
    const Tensor x_RD = timer_.empty(DType::BF16, {slots, s_.hidden});
    const Tensor row_Tk = integers({s_.tokens, s_.topk});
    const Tensor slot_R = integers({slots}), token_R = integers({slots});
    const Tensor counts = timer_.zeros(DType::I64, {s_.experts});
    measure("sort_by_expert", by(s_.tokens, s_.topk), 4 * kFloat * number(slots), [&] {
      kernels::sort_by_expert(stream_, row_Tk, slot_R, token_R, counts, chosen_);
    });
    measure("permute", by(slots, s_.hidden), number(x_RD.bytes() + x_TD.bytes()), [&] {
      kernels::gather_rows(stream_, x_RD, x_TD, token_R);
    });
    measure("unpermute", by(slots, s_.hidden), number(x_RD.bytes() + x_TD.bytes()), [&] {
      kernels::sum_rows(stream_, x_TD, x_RD, row_Tk);
    });
  }

  // Reads and writes once the gradient rows of the ids that occur; an assigned gradient is written
  // in full.
  void embedding() {
    const std::int64_t tokens = s_.tokens, hidden = s_.hidden;
    const std::vector<std::int32_t> drawn = drawn_ids(tokens);
    const double different = number(std::ssize(std::set(drawn.begin(), drawn.end())));
    const Tensor ids = ids_tensor(drawn), x = half({tokens, hidden});
    const Tensor table = half({s_.vocabulary, hidden});
    const double matrix = number(x.bytes());
    measure("embedding_forward", by(tokens, hidden), 2 * matrix, [&] {
      kernels::embedding_forward(stream_, x, table, ids);
    });
    const Tensor gradient = timer_.zeros(DType::F32, {s_.vocabulary, hidden});
    measure("embedding_wgrad", by(tokens, hidden), matrix + number(gradient.bytes()), [&] {
      kernels::embedding_wgrad(stream_, gradient, x, ids, kernels::Write::Assign);
    });
    measure(
        "embedding_wgrad, adding",
        by(tokens, hidden),
        matrix + 2 * kFloat * different * number(hidden),
        [&] { kernels::embedding_wgrad(stream_, gradient, x, ids, kernels::Write::Accumulate); });
  }

  void cross_entropy() {
    const std::int64_t rows = s_.logit_rows, vocabulary = s_.vocabulary;
    const Tensor logits = single({rows, vocabulary}), labels = ids_tensor(drawn_ids(rows));
    const Tensor loss = timer_.empty(DType::F32, {rows}), lse = timer_.empty(DType::F32, {rows});
    const Tensor sums = timer_.empty(DType::F32, {rows, 2});
    const Tensor dlogits = timer_.empty(DType::BF16, {rows, vocabulary});
    const double all = number(logits.bytes());
    measure("cross_entropy_forward", by(rows, vocabulary), all, [&] {
      kernels::cross_entropy_sums(stream_, sums, logits, labels);
      kernels::cross_entropy_forward(stream_, loss, lse, sums, labels);
    });
    measure("cross_entropy_dgrad", by(rows, vocabulary), all + number(dlogits.bytes()), [&] {
      kernels::cross_entropy_dgrad(stream_, dlogits, logits, lse, labels, 1e-4f);
    });
  }

  // AdamW reads the gradient, reads and writes both moments and the master weights, and writes the
  // bf16 weights.
  void optimizer() {
    const Shape shape{s_.parameters};
    const Tensor master = timer_.random(DType::F32, shape, 0.02f);
    const Tensor gradient = timer_.random(DType::F32, shape, 1e-4f);
    const Tensor first = timer_.zeros(DType::F32, shape), second = timer_.zeros(DType::F32, shape);
    const Tensor weights = timer_.empty(DType::BF16, shape);
    const Tensor square_norm = timer_.zeros(DType::F64, {1});
    const auto count = number(s_.parameters);
    const std::string size = text("{} values", s_.parameters);
    measure("squared_norm", size, kFloat * count, [&] {
      kernels::squared_norm(stream_, square_norm, gradient, kernels::Write::Assign);
    });
    const kernels::AdamW options{.learning_rate = 1e-4f,
                                 .beta1 = 0.9f,
                                 .beta2 = 0.95f,
                                 .epsilon = 1e-8f,
                                 .weight_decay = 0.1f};
    measure("adamw", size, (7 * kFloat + kHalf) * count, [&] {
      kernels::adamw(stream_, weights, master, first, second, gradient, options);
    });
    smaller_optimizer(weights, gradient, options);
    measure("copy fp32 to bf16", size, (kFloat + kHalf) * count, [&] {
      kernels::copy(stream_, weights, master);
    });
    measure("accumulate", size, 3 * kFloat * count, [&] {
      kernels::accumulate(stream_, first, master);
    });
    measure("zero", size, kFloat * count, [&] { kernels::zero(stream_, gradient); });
  }

  // Everything but the gradient has 16 bits and is read and written.
  void smaller_optimizer(const Tensor& weights,
                         const Tensor& gradient,
                         const kernels::AdamW& options) {
    const Shape shape{s_.parameters};
    const Tensor remainder = timer_.zeros(DType::I16, shape);
    const Tensor first = timer_.zeros(DType::BF16, shape);
    const Tensor second = timer_.zeros(DType::BF16, shape);
    kernels::zero(stream_, weights);
    measure("adamw in 16 bits",
            text("{} values", s_.parameters),
            (kFloat + 8 * kHalf) * number(s_.parameters),
            [&] { kernels::adamw(stream_, weights, remainder, first, second, gradient, options); });
  }

  static constexpr std::uint64_t kIds = 5;

  DeviceTimer& timer_;
  const KernelShapes& s_;
  const NoteOperation& note_;
  tensor::Stream& stream_;
  Tensor chosen_;  // experts of each token
  std::vector<DeviceRate> rates_;
};

}  // namespace

KernelShapes kernel_shapes(const config::Config& config) {
  const config::ModelConfig& model = config.model;
  const std::int64_t tokens = config.train.micro_batch_size * model.seq_length;
  return {.tokens = tokens,
          .hidden = model.hidden_size,
          .experts = model.experts(),
          .topk = model.moe_router_topk,
          .expert_width = model.expert_width(),
          .vocabulary = model.vocab_size,
          .sequence = model.seq_length,
          .heads = model.num_attention_heads,
          .head_width = model.head_dim(),
          .logit_rows = std::min<std::int64_t>(tokens, 4096),
          .parameters = std::int64_t{1} << 28};
}

std::vector<DeviceRate> bench_kernels(DeviceTimer& timer,
                                      const KernelShapes& shapes,
                                      const NoteOperation& note) {
  return KernelsBench(timer, shapes, note).run();
}

}  // namespace weft::measure
