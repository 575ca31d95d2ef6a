// Operations of a decoder. forward and dgrad assign; wgrad assigns or accumulates, by its `Write`.
//
// All functions enqueue on the stream and return. Suffixes give shapes: T tokens (rows), D, N, K
// widths, V vocabulary, E experts, k experts per token, R rows on their way to experts. Activations
// and weights are fp32 or bf16, one dtype per call. Arithmetic and weight gradients are fp32.
// Matrices may have strided rows; all other tensors are contiguous. Comments name the exceptions.
// Results depend on shapes and values only, never on the number of threads.
//
// Each call checks shapes and dtypes on every device (InternalError), then runs the operation of
// the stream's device (kernels/operations.h). Only the running operation sees an index or a count
// out of range: that is a fault of the stream (tensor/fault.h). Any tensor may be host-visible.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "weft/kernels/rotary_angles.h"
#include "weft/kernels/row_tokens.h"
#include "weft/tensor/tensor.h"

namespace weft::kernels {

using tensor::Pool;
using tensor::Stream;
using tensor::Tensor;

// Effect of a wgrad on its result. Assign: the result is not read, and all of it is written, also
// where no rows are summed.
enum class Write { Assign, Accumulate };

// Sets the BLAS to one thread. Called before ranks start; ranks split work with their own threads.
void prepare_process();

// linear: y = x w^T. Each matrix has a dtype of its own: a router's logits are always fp32.
void linear_forward(Stream&, Tensor y_TN, Tensor x_TK, Tensor w_NK);
void linear_dgrad(Stream&, Tensor dx_TK, Tensor dy_TN, Tensor w_NK);
void linear_wgrad(Stream&, Tensor dw_NK, Tensor dy_TN, Tensor x_TK, Write);

// grouped linear: rows of x are sorted by expert; expert e has rows_E[e] of them, possibly zero.
// The counts (int64) are read on the device, so that the host needs no copy. R is the room for all
// rows; rows behind the counted ones are neither read nor written. Matrices are contiguous.
void grouped_linear_forward(Stream&, Tensor y_RN, Tensor x_RK, Tensor w_ENK, Tensor rows_E);
void grouped_linear_dgrad(Stream&, Tensor dx_RK, Tensor dy_RN, Tensor w_ENK, Tensor rows_E);
void grouped_linear_wgrad(Stream&, Tensor dw_ENK, Tensor dy_RN, Tensor x_RK, Tensor rows_E, Write);

// RMSNorm over each group of N columns; C is a multiple of N. N = C: the usual norm. N = head
// width: the per-head norm of queries and keys. rstd_TG keeps 1 / sqrt(mean square + epsilon),
// fp32, G = C / N. dgrad adds residual_TC (undefined: none), the gradient of x past the norm,
// before it rounds.
void rms_norm_forward(Stream&, Tensor y_TC, Tensor rstd_TG, Tensor x_TC, Tensor w_N, float epsilon);
void rms_norm_dgrad(Stream&,
                    Tensor dx_TC,
                    Tensor dy_TC,
                    Tensor x_TC,
                    Tensor w_N,
                    Tensor rstd_TG,
                    Tensor residual_TC = {});
void rms_norm_wgrad(Stream&, Tensor dw_N, Tensor dy_TC, Tensor x_TC, Tensor rstd_TG, Write);

// RMSNorm over `width` columns that are spread over several ranks, C on each rank. row_dots writes
// a rank's part of each row's sum, fp32: the sum of a b w, or of a b if w is undefined. Ranks sum x
// x before the forward and w dy x before dgrad; wgrad is rms_norm_wgrad.
void row_dots(Stream&, Tensor dots_T, Tensor a_TC, Tensor b_TC, Tensor w_C);
struct SharedNorm {
  std::int64_t width = 1;
  float epsilon = 0;
};
void shared_norm_forward(Stream&,
                         Tensor y_TC,
                         Tensor rstd_T1,
                         Tensor x_TC,
                         Tensor w_C,
                         Tensor squares_T,
                         const SharedNorm&);
void shared_norm_dgrad(Stream&,
                       Tensor dx_TC,
                       Tensor dy_TC,
                       Tensor x_TC,
                       Tensor w_C,
                       Tensor rstd_T1,
                       Tensor dots_T,
                       const SharedNorm&);

// Rotary embedding: pairs of channels turn by their position's angle. Row t has position t mod S.
// table_SD is (S, d), fp32: per row d/2 cosines, then d/2 sines, both times YaRN's `magnitude`. y
// may be x, dx may be dy.
void rotary_table(Stream&, Tensor table_SD, const RotaryAngles&);
void rotary_forward(Stream&, Tensor y_TC, Tensor x_TC, Tensor table_SD, const Rotary& = {});
void rotary_dgrad(Stream&, Tensor dx_TC, Tensor dy_TC, Tensor table_SD, const Rotary& = {});

// Fused RMSNorm over heads of N columns and their rotation: rms_norm_forward, then rotary_forward,
// without rounding between. All N channels of a head turn (table_SN). dy is the gradient of the
// rotated y; dx may be dy.
void norm_rotary_forward(Stream&,
                         Tensor y_TC,
                         Tensor rstd_TG,
                         Tensor x_TC,
                         Tensor w_N,
                         Tensor table_SN,
                         float epsilon,
                         Rotary::Pairs pairs);
void norm_rotary_dgrad(Stream&,
                       Tensor dx_TC,
                       Tensor dy_TC,
                       Tensor x_TC,
                       Tensor w_N,
                       Tensor rstd_TG,
                       Tensor table_SN,
                       Rotary::Pairs pairs);
void norm_rotary_wgrad(Stream&,
                       Tensor dw_N,
                       Tensor dy_TC,
                       Tensor x_TC,
                       Tensor rstd_TG,
                       Tensor table_SN,
                       Rotary::Pairs pairs,
                       Write);

// Keys and values of latent attention. A head of kv_TC is (content | value), a head of v_TV a
// value. A head of k_TK is (content | position); all heads share one position part.
struct LatentHeads {
  std::int64_t heads = 0, content = 0, position = 0, value = 0;
};
void latent_keys_forward(Stream&,
                         Tensor k_TK,
                         Tensor v_TV,
                         Tensor kv_TC,
                         Tensor position_TP,
                         const LatentHeads&);
void latent_keys_dgrad(Stream&,
                       Tensor dkv_TC,
                       Tensor dposition_TP,
                       Tensor dk_TK,
                       Tensor dv_TV,
                       const LatentHeads&);

// Rows of sequences that lie one behind the other: `count` rows from `begin` on, of the `each` rows
// of every sequence.
struct SequenceRows {
  std::int64_t each = 0, begin = 0, count = 0;

  std::int64_t end() const { return begin + count; }
};

// Grouped-query attention over sequences of S rows; T = batch * S. Masked scores are not computed.
// Shapes bound the workspace, whatever the number of threads. Value heads, and so o, may have
// another width than query and key heads.
//
// A call may cover a part of the queries and of the keys: rows of q, o and lse; rows of k and v. It
// then reads and writes those rows alone; a sequence may have fewer or more key rows than query
// rows. Causal: the last query sees all keys of the call, each query before it one key less.
enum class AttentionMask { Causal, None };
struct AttentionShape {
  std::int64_t sequence = 0;    // S
  std::int64_t heads = 0;       // query heads
  std::int64_t groups = 0;      // key/value heads; divides heads
  std::int64_t head_width = 0;  // d
  float scale = 1;              // factor of the scores, usually 1 / sqrt(d)
  std::optional<std::int64_t> value_width = std::nullopt;  // width of a value head; nullopt: d
  std::optional<SequenceRows> queries = std::nullopt, keys = std::nullopt;  // nullopt: all S
  AttentionMask mask = AttentionMask::Causal;

  SequenceRows query_rows() const { return queries.value_or(SequenceRows{sequence, 0, sequence}); }
  SequenceRows key_rows() const { return keys.value_or(SequenceRows{sequence, 0, sequence}); }
  // True if the call is a causal one over whole sequences.
  bool is_whole() const { return !queries && !keys && mask == AttentionMask::Causal; }
};
// lse_HT: logarithm of the sum of exponentials of each query's scores, fp32, (heads, T).
void attention_forward(Stream&,
                       Pool& workspace,
                       Tensor o_TO,
                       Tensor lse_HT,
                       Tensor q_TQ,
                       Tensor k_TK,
                       Tensor v_TV,
                       const AttentionShape&);
void attention_dgrad(Stream&,
                     Pool& workspace,
                     Tensor dq_TQ,
                     Tensor dk_TK,
                     Tensor dv_TV,
                     Tensor do_TO,
                     Tensor o_TO,
                     Tensor lse_HT,
                     Tensor q_TQ,
                     Tensor k_TK,
                     Tensor v_TV,
                     const AttentionShape&);
// Merges attention over further keys, (part, part_lse), into (sum_TO in fp32, lse), for the rows of
// the shape's queries. Gradients of a part: attention_dgrad with the o and lse of all keys.
void attention_merge(Stream&,
                     Tensor sum_TO,
                     Tensor lse_HT,
                     Tensor part_TO,
                     Tensor part_lse_HT,
                     const AttentionShape&);

// SwiGLU on h = (gate | up): y = silu(gate) * up.
void swiglu_forward(Stream&, Tensor y_TF, Tensor h_T2F);
void swiglu_dgrad(Stream&, Tensor dh_T2F, Tensor dy_TF, Tensor h_T2F);
// SwiGLU times one weight per row (fp32): the router's probability, applied before FC2.
void weighted_swiglu_forward(Stream&, Tensor y_RF, Tensor h_R2F, Tensor p_R);
void weighted_swiglu_dgrad(Stream&,
                           Tensor dh_R2F,
                           Tensor dp_R,
                           Tensor dy_RF,
                           Tensor h_R2F,
                           Tensor p_R);

// Gate: y = x * sigmoid(g), one fp32 logit g per row.
void gate_forward(Stream&, Tensor y_TD, Tensor x_TD, Tensor g_T);
void gate_dgrad(Stream&, Tensor dx_TD, Tensor dg_T, Tensor dy_TD, Tensor x_TD, Tensor g_T);

// Vocabulary split across ranks: number of ids before and behind this rank's V.
struct OtherIds {
  std::int64_t before = 0, behind = 0;
};

// An id of another rank gives a zero row and no gradient. wgrad skips negative ids.
void embedding_forward(Stream&, Tensor x_TD, Tensor table_VD, Tensor ids_T, const OtherIds& = {});
void embedding_wgrad(Stream&,
                     Tensor dtable_VD,
                     Tensor dx_TD,
                     Tensor ids_T,
                     Write,
                     const OtherIds& = {});

// Cross entropy of each row with its label (int32; negative: ignored, loss 0, no gradient), all
// fp32. Ranks that share the vocabulary exchange the sums between its two steps.
// sums: over this rank's logits, the logarithm of the sum of e^logit; and the label's logit (0 if
// another rank has it).
// forward: the loss, and lse over the whole vocabulary, from the sums of P ranks, (P T, 2), rank by
// rank. With one rank, lse is bit-identical to that rank's sum.
// dgrad: dlogits = scale * (softmax - one hot), fp32 or bf16, in memory of its own or over the
// logits. Over the logits, each row begins where the logits' row does (logits, or
// logits.front_halves()).
void cross_entropy_sums(Stream&,
                        Tensor sums_T2,
                        Tensor logits_TV,
                        Tensor labels_T,
                        const OtherIds& = {});
void cross_entropy_forward(Stream&, Tensor loss_T, Tensor lse_T, Tensor sums_P2, Tensor labels_T);
void cross_entropy_dgrad(Stream&,
                         Tensor dlogits_TV,
                         Tensor logits_TV,
                         Tensor lse_T,
                         Tensor labels_T,
                         float scale,
                         const OtherIds& = {});

// Router: the k best experts of each token in ascending order of expert, with probabilities. Equal
// scores prefer the lower expert. All fp32; experts int32.
//
// Score of an expert: its share of a softmax, or a function of its own logit. bias_E (undefined:
// none) is added to the score for the selection only.
enum class Score { Softmax, Sigmoid, SqrtSoftplus };
// E experts in `groups` of neighbours. A token keeps its `kept` best groups and chooses its experts
// among them. A group is rated by the sum of its `counted` best experts.
struct GroupLimit {
  std::int64_t groups = 1, kept = 1, counted = 1;
};
struct TopK {
  // softmax over all experts, or over the chosen ones
  enum class Softmax { BeforeSelection, AfterSelection };
  enum class Renormalise { No, Yes };  // to sum 1; AfterSelection already does
  Score score = Score::Softmax;
  Softmax softmax = Softmax::AfterSelection;
  Renormalise renormalise = Renormalise::No;
  GroupLimit groups = {};
  float factor = 1;  // multiplies the probabilities
};
void top_k_forward(Stream&,
                   Tensor p_Tk,
                   Tensor experts_Tk,
                   Tensor logits_TE,
                   Tensor bias_E,
                   const TopK&);
// Probabilities as top_k_forward computes them, for given experts: distinct for each token, in any
// order and in any group. Its gradient is top_k_dgrad.
void probabilities_of_choice(Stream&,
                             Tensor p_Tk,
                             Tensor experts_Tk,
                             Tensor logits_TE,
                             const TopK&);
void top_k_dgrad(Stream&,
                 Tensor dlogits_TE,
                 Tensor dp_Tk,
                 Tensor p_Tk,
                 Tensor experts_Tk,
                 Tensor logits_TE,
                 const TopK&);

// Capacity: an expert keeps at most `capacity` of the slots that chose it: the most probable, or
// those of the first tokens. kept_experts and kept_p are the choice with -1 and 0 in dropped slots.
// dropped_1 (int64) grows by the number of dropped slots. dgrad: a dropped slot passes no gradient.
enum class Keep { MostProbable, FirstTokens };
void drop_over_capacity_forward(Stream&,
                                Tensor kept_p_Tk,
                                Tensor kept_experts_Tk,
                                Tensor dropped_1,
                                Tensor p_Tk,
                                Tensor experts_Tk,
                                std::int64_t experts,
                                std::int64_t capacity,
                                Keep keep);
void drop_over_capacity_dgrad(Stream&, Tensor dp_Tk, Tensor dkept_p_Tk, Tensor kept_experts_Tk);

// Runs of neighbouring tokens, counted separately: token t belongs to run (first + t) / length.
// Default: one run of all tokens.
struct TokenRuns {
  std::int64_t first = 0, length = std::numeric_limits<std::int64_t>::max();
};
// Adds to counts_GE (int64) the slots of each expert, for each of G runs of tokens.
void count_experts(Stream&, Tensor counts_GE, Tensor experts_Tk, const TokenRuns&);
// Moves each expert's bias (fp32) by `rate`: up if the expert has fewer rows than the mean, down if
// it has more.
void move_bias(Stream&, Tensor bias_E, Tensor counts_E, float rate);

// y = x times noise between 1 - epsilon and 1 + epsilon, a function of (key, token, column). jitter
// is its own dgrad.
struct Noise {
  std::uint64_t key = 0;
  RowTokens tokens = {};
};
void jitter(Stream&, Tensor y_TD, Tensor x_TD, float epsilon, const Noise&);
// Normal draws in place of logits, a function of (key, token, expert). Each expert adds a bias with
// standard deviation `deviation`, a function of (expert_key, expert).
struct RandomLogits {
  Noise noise;
  std::uint64_t expert_key = 0;
  float deviation = 0;
};
void random_logits(Stream&, Tensor logits_TE, const RandomLogits&);

// Load-balancing loss E / T * sum_te s_te f_te, fp32, without coefficient. s: a token's scores over
// all experts, scaled to sum 1. f: an expert's share of the rows (counts_GE, int64) that are
// counted for the token's run, of G. The loss is 1 if either is even, and 0 without tokens. dgrad
// assigns scale * d; the counts are constants.
void balance_loss_forward(Stream&,
                          Tensor loss_1,
                          Tensor logits_TE,
                          Tensor counts_GE,
                          const TokenRuns&,
                          Score score);
void balance_loss_dgrad(Stream&,
                        Tensor dlogits_TE,
                        Tensor logits_TE,
                        Tensor counts_GE,
                        const TokenRuns&,
                        Score score,
                        float scale);
// z-loss: mean over tokens of (log sum exp of the logits)^2, without coefficient.
void z_loss_forward(Stream&, Tensor loss_1, Tensor logits_TE);
void z_loss_dgrad(Stream&, Tensor dlogits_TE, Tensor logits_TE, float scale);

// Rows of tokens. Sorts may read numbers of other ranks: one out of range is a fault, and a
// SystemError. Choice -1: none (dropped, or another rank's).
//
// `choose_shards`: copies each choice and its probability once per shard of the expert. A rank
// holds one shard of each of `experts` neighbouring experts. The `shards` ranks that share those
// experts are consecutive; shard s of expert e is number (e / experts * shards + s) * experts + e %
// experts. A token's copies ascend by rank. copy_Sn (int32): for each slot the places of its
// copies, as flat indices. A slot without an expert has copies without one.
struct ExpertShards {
  std::int64_t experts = 1, shards = 1;
};
void choose_shards(Stream&,
                   Tensor chosen_p_TK,
                   Tensor chosen_TK,
                   Tensor copy_Sn,
                   Tensor p_Tk,
                   Tensor experts_Tk,
                   const ExpertShards&);
// `sort_by_expert`: slots whose expert is in [first, first + E), sorted by expert, stable in token
// order. token_R[r]: token of row r. slot_R[r]: its flat index, token * k + j. row_Tk[t, j]: row of
// slot j. counts_E: rows per expert. -1: room without a row, or a slot without a row. Padded: every
// expert has R / E rows of room of its own. int32, counts int64.
enum class Room { Packed, Padded };
void sort_by_expert(Stream&,
                    Tensor row_Tk,
                    Tensor slot_R,
                    Tensor token_R,
                    Tensor counts_E,
                    Tensor experts_Tk,
                    std::int64_t first = 0,
                    Room room = Room::Packed);
// `sort_by_group`: one row per token and group of `width` experts that the token chose from, by
// group, stable in token order. Group g has the `width` experts from first + g * width on.
// token_R[r]: token of row r. choice_Rk[r]: its experts in that group, -1 for the others.
// row_Tm[t]: rows of token t in order. counts_G: rows per group. A token's experts ascend. -1: room
// without a row.
struct ExpertGroups {
  std::int64_t first = 0, width = 1;
};
void sort_by_group(Stream&,
                   Tensor row_Tm,
                   Tensor token_R,
                   Tensor choice_Rk,
                   Tensor counts_G,
                   Tensor experts_Tk,
                   const ExpertGroups&);
// rows_G: tokens that chose from a group. choices_G: slots that chose from it. int64.
void count_by_group(Stream&,
                    Tensor rows_G,
                    Tensor choices_G,
                    Tensor experts_Tk,
                    const ExpertGroups&);
// p_Rk[r, j] = p_Tk[token_R[r], j] if choice_Rk[r, j] is an expert, else 0. fp32.
void gather_choices(Stream&, Tensor p_Rk, Tensor p_Tk, Tensor token_R, Tensor choice_Rk);
// rows_L[l] = sum over ranks g of counts_GE[g, first + l]; int64, counts may be strided.
void sum_counts(Stream&, Tensor rows_L, Tensor counts_GE, std::int64_t first);
// Integrity code of counts (int64, below 2^40) that a member sends to the others of its group.
// `seal_counts` writes the code into the upper bits; `open_counts` checks and removes it for all
// members. A damaged count is a SystemError that names its member. In place.
void seal_counts(Stream&, Tensor counts_N, std::int64_t member);
void open_counts(Stream&, Tensor counts_GN);

// Two-hop dispatch: rows go across machines to the rank with the same index, then within the
// machine. If any rank would get more than `budget` slots (0: no budget), all rows are 0 and
// overflow_1 grows by one (fp64; undefined without a budget).
//
// counts_GC: one line per rank (int64, may be strided), counted over that rank's own tokens. A line
// has rows for each machine, rows for each rank (only if a machine has several), and slots for each
// rank.
// splits: rows sent across to each machine, received across from each; rows sent within to each
// rank, received within from each; then the slots that arrive here.
struct Hops {
  std::int64_t ranks = 1, per_machine = 1, rank = 0;
  std::int64_t most_tokens = 0;   // tokens per rank, at most
  std::int64_t most_choices = 1;  // choices per token, at most
  std::int64_t most_local = 1;    // choices per token on one rank, at most
  std::int64_t budget = 0;

  std::int64_t machines() const { return ranks / per_machine; }
  std::int64_t counts() const { return machines() + (per_machine > 1 ? ranks : 0) + ranks; }
  std::int64_t splits() const { return 2 * machines() + 2 * per_machine + 1; }
};
void plan_hops(Stream&, Tensor splits, Tensor overflow_1, Tensor counts_GC, const Hops&);

// y[r] = x[index[r]] for matrices (any dtype) and vectors; 0 if the index is -1.
void gather_rows(Stream&, Tensor y_RD, Tensor x_TD, Tensor index_R);
// y[t] = sum over j of x[index[t, j]], j ascending, in fp32; an index of -1 adds nothing. y may be
// fp32 if x is not. residual_TD (undefined: none), of y's and x's dtype, is added last, before the
// sum is rounded.
void sum_rows(Stream&, Tensor y_TD, Tensor x_RD, Tensor index_Tk, Tensor residual_TD = {});
// Copies blocks of whole rows; `to` blocks do not overlap. A vector's rows are its elements.
struct RowBlock {
  std::int64_t from = 0, to = 0, rows = 0;
};
void copy_rows(Stream&, Tensor y, Tensor x, std::span<const RowBlock> blocks);

// y += x for the given rows of matrices; y is fp32.
void accumulate_rows(Stream&, Tensor y_TC, Tensor x_TC, const SequenceRows& rows);

// Elementwise, contiguous. y may be a or b.
void add(Stream&, Tensor y, Tensor a, Tensor b);
void accumulate(Stream&, Tensor y, Tensor a);  // y += a; a fp32, y fp32 or bf16
void scale(Stream&, Tensor y, float factor);   // fp32
void zero(Stream&, Tensor y);
void fill(Stream&, Tensor y, std::int64_t value);  // int32 or int64
// Converts between fp32 and bf16; matrices may have strided rows.
void copy(Stream&, Tensor y, Tensor x);

// Sum of squares of a vector, in fixed blocks; sum_1 is fp64.
void squared_norm(Stream&, Tensor sum_1, Tensor x_N, Write write);
// sum_1 (fp64) = sum of a fp32 vector in fixed blocks.
void sum(Stream&, Tensor sum_1, Tensor x_N);
// Number of zeros in a vector, of either sign; count_1 is fp64.
void count_zeros(Stream&, Tensor count_1, Tensor x_N, Write write);

// AdamW with decoupled weight decay on contiguous ranges. `gradient_scale` multiplies the gradient
// (fp32 or bf16) as it is read; the gradient in memory stays.
// Weights and masters are one of: fp32 (master is the same tensor); bf16 rounded from an fp32
// master; bf16 with an int16 remainder, together the fp32 master; bf16 rounded from an fp16 master.
// tensor/narrow_numbers.h defines the remainder and the fp16 master. A moment is fp32, bf16, or
// fp16 as that header defines it. Arithmetic is fp32; results are rounded when they are stored.
struct ElementRun {
  std::int64_t begin = 0, end = 0;
};
struct AdamW {
  float learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  float gradient_scale = 1;
  std::int64_t step = 1;                   // for the bias correction, from 1
  std::vector<ElementRun> undecayed = {};  // without decay; in order, disjoint
};
// Writes fp16 masters of bf16 weights.
void masters_in_half(Stream&, Tensor master_N, Tensor weights_N);
void adamw(Stream&,
           Tensor weights_N,
           Tensor master_N,
           Tensor moment1_N,
           Tensor moment2_N,
           Tensor gradient_N,
           const AdamW&);

}  // namespace weft::kernels
