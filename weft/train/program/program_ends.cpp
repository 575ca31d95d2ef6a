// Bodies of embedding and head. If tensor-parallel ranks share the vocabulary, both process the
// tokens of the whole group.
#include <algorithm>

#include "weft/base/check.h"
#include "weft/model/embedding.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using schedule::Node;
using schedule::Part;
using tensor::Tensor;

}  // namespace

Tensor Program::embedded(const Node& node) {
  return layer_input(node, schedule::chunk_of(anatomy_, node).first_layer);
}

Program::Bodies Program::Pieces::embed_lookup() {
  return {
      .forward =
          [](Program& p, const Node& node, const Context& context) {
            p.take_input(node,
                         model::embedding_forward(context,
                                                  p.weights_.embedding_VD,
                                                  p.micro_batch(node).ids_T));
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::MicroBatchState& batch = p.micro_batch(node);
            Tensor& dx_TD = p.chunk(node).dx_TD;
            model::embedding_wgrad(context, p.weights_.embedding_VD, dx_TD, batch.learning_ids_T);
            for (Tensor* done : {&dx_TD, &batch.ids_T, &batch.learning_ids_T}) done->reset();
          },
      .output = [](Program& p, const Node& node) { return p.embedded(node); }};
}

// For each token one rank found a non-zero row: the sum is exact.
Program::Bodies Program::Pieces::embed_scatter() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                const Tensor all_TD = p.embedded(node);
                const tensor::Shape own{p.micro_batch(node).tokens, all_TD.dim(1)};
                p.take_input(node, p.scattered(context, all_TD, context.output(own)));
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                Tensor& dx_TD = p.chunk(node).dx_TD;
                dx_TD = p.gathered(context, dx_TD);
              },
          .output = [](Program& p, const Node& node) { return p.embedded(node); }};
}

Program::Bodies Program::Pieces::embed(Part part) {
  if (part == Part::Lookup) return embed_lookup();
  CHECK(part == Part::Scatter, "embed has no part {}", schedule::word(part));
  return embed_scatter();
}

Program::Bodies Program::Pieces::head_norm() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                model::head_norm_forward(context,
                                         p.micro_batch(node).head,
                                         p.weights_.head,
                                         p.chunk(node).y_TD);
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.take_gradient(node,
                                model::head_norm_dgrad(context,
                                                       p.micro_batch(node).head,
                                                       p.weights_.head,
                                                       p.chunk(node).y_TD));
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::MicroBatchState& batch = p.micro_batch(node);
                Tensor& x_TD = p.chunk(node).y_TD;
                model::head_norm_wgrad(context, batch.head, p.weights_.head, x_TD);
                x_TD.reset();
                batch.labels_T.reset();
              }};
}

Program::Bodies Program::Pieces::head_gather() {
  return {
      .forward =
          [](Program& p, const Node& node, const Context& context) {
            Tensor& y_TD = p.micro_batch(node).head.norm.y_TD;
            y_TD = p.gathered(context, y_TD);
          },
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::MicroBatchState& batch = p.micro_batch(node);
            Tensor& dy_TD = batch.head.norm.dy_TD;
            dy_TD = p.scattered(context, dy_TD, context.activation({batch.tokens, dy_TD.dim(1)}));
          }};
}

Program::Bodies Program::Pieces::head_logits() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                model::MicroBatchState& batch = p.micro_batch(node);
                model::head_logits_forward(context,
                                           batch.head,
                                           p.weights_.head,
                                           batch.labels_T,
                                           std::max<std::int64_t>(1, batch.labelled));
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::head_logits_dgrad(context, p.micro_batch(node).head, p.weights_.head);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::head_logits_wgrad(context, p.micro_batch(node).head, p.weights_.head);
              },
          .output =
              [](Program& p, const Node& node) {
                const model::HeadState& head = p.micro_batch(node).head;
                return head.loss_T.defined() ? head.loss_T : head.sums_T2;
              }};
}

Program::Bodies Program::Pieces::head_sums() {
  return {.forward = [](Program& p, const Node& node, const Context& context) {
    Tensor& sums_T2 = p.micro_batch(node).head.sums_T2;
    sums_T2 = p.gathered(context, sums_T2);
  }};
}

Program::Bodies Program::Pieces::head_loss() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                model::MicroBatchState& batch = p.micro_batch(node);
                model::head_loss_forward(context,
                                         batch.head,
                                         batch.labels_T,
                                         p.totals_.loss_sum(node.micro_batch));
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::MicroBatchState& batch = p.micro_batch(node);
                model::head_loss_dgrad(context,
                                       batch.head,
                                       p.weights_.head,
                                       batch.labels_T,
                                       std::max<std::int64_t>(1, batch.labelled));
              },
          .output = [](Program& p, const Node& node) { return p.micro_batch(node).head.lse_T; }};
}

Program::Bodies Program::Pieces::head(Part part) {
  if (part == Part::Norm) return head_norm();
  if (part == Part::Gather) return head_gather();
  if (part == Part::Logits) return head_logits();
  if (part == Part::Sums) return head_sums();
  CHECK(part == Part::Loss, "head has no part {}", schedule::word(part));
  return head_loss();
}

}  // namespace weft::train
