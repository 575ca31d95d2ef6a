// Every operation a decoder needs, each once. forward and dgrad assign, a wgrad does as told.
//
// All functions enqueue on the stream and return. Shapes are in the suffixes: T tokens (rows), D,
// N, K widths, V vocabulary, E experts, k experts a token, R rows of tokens on their way to
// experts. Activations and weights are fp32 or bf16 (one dtype a call unless said otherwise),
// arithmetic is fp32, weight gradients are fp32. Matrices may have strided rows unless said
// otherwise; everything else is contiguous. Results depend on the shapes and values only, never on
// the number of threads.
//
// Shapes and dtypes are checked at the call, whatever the device (InternalError); the work itself
// is that of the stream's device (kernels/operations.h). What only the work sees, an index or a
// count that does not fit, is a fault of the stream (tensor/fault.h). Any tensor may be
// host-visible.
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

// What a wgrad does with what is in its result: an assigning one does not read it, and writes all
// of it, also where there is nothing to sum.
enum class Write { Assign, Accumulate };

// Sets the BLAS to one thread, before ranks start: they split work with their own threads.
void prepare_process();

// linear: y = x w^T. Each matrix is fp32 or bf16 on its own: a router's logits are always fp32.
void linear_forward(Stream&, Tensor y_TN, Tensor x_TK, Tensor w_NK);
void linear_dgrad(Stream&, Tensor dx_TK, Tensor dy_TN, Tensor w_NK);
void linear_wgrad(Stream&, Tensor dw_NK, Tensor dy_TN, Tensor x_TK, Write);

// grouped linear: rows of x are sorted by expert, rows_E[e] of them for expert e (zero allowed).
// The counts (int64) are read where the work runs, so that no host needs to know them; R is room
// for their sum, and what lies behind it is neither read nor written. Matrices are contiguous.
void grouped_linear_forward(Stream&, Tensor y_RN, Tensor x_RK, Tensor w_ENK, Tensor rows_E);
void grouped_linear_dgrad(Stream&, Tensor dx_RK, Tensor dy_RN, Tensor w_ENK, Tensor rows_E);
void grouped_linear_wgrad(Stream&, Tensor dw_ENK, Tensor dy_RN, Tensor x_RK, Tensor rows_E, Write);

// RMSNorm over each group of N columns, with C a multiple of N: N = C is the usual norm, N = head
// width the per-head norm of queries and keys. rstd_TG keeps 1 / sqrt(mean square + epsilon), fp32,
// G = C / N. dgrad adds residual_TC (undefined: none), x's gradient past the norm, and then rounds.
void rms_norm_forward(Stream&, Tensor y_TC, Tensor rstd_TG, Tensor x_TC, Tensor w_N, float epsilon);
void rms_norm_dgrad(Stream&,
                    Tensor dx_TC,
                    Tensor dy_TC,
                    Tensor x_TC,
                    Tensor w_N,
                    Tensor rstd_TG,
                    Tensor residual_TC = {});
void rms_norm_wgrad(Stream&, Tensor dw_N, Tensor dy_TC, Tensor x_TC, Tensor rstd_TG, Write);

// RMSNorm over `width` columns, of which this and other ranks have C each. What a rank has of a
// row's sum is row_dots, fp32: of a b w, or of a b where w is undefined. The sum over ranks of x x
// comes before the forward, that of w dy x before dgrad; wgrad is rms_norm_wgrad.
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
// table_SD holds (S, d), fp32: a row is the cosines, then the sines, of d/2 angles, times
// `magnitude` where YaRN stretches. y may be x, dx may be dy.
void rotary_table(Stream&, Tensor table_SD, const RotaryAngles&);
void rotary_forward(Stream&, Tensor y_TC, Tensor x_TC, Tensor table_SD, const Rotary& = {});
void rotary_dgrad(Stream&, Tensor dx_TC, Tensor dy_TC, Tensor table_SD, const Rotary& = {});

// RMSNorm over heads of N columns and their rotation (all of a head turns: table_SN) in one,
// without rounding between: rms_norm_forward, then rotary_forward. dy is the gradient of the turned
// y; dx may be dy.
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

// Keys and values of latent attention: a head of kv_TC is (content | value), a head of k_TK
// (content | position), with one position part for all heads; a head of v_TV is a value.
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

// Rows of sequences one behind the other: those from `begin` on, of the `each` of every sequence.
struct SequenceRows {
  std::int64_t each = 0, begin = 0, count = 0;

  std::int64_t end() const { return begin + count; }
};

// Grouped-query attention over sequences of S rows; T = batch * S. What is masked is not computed.
// The workspace is bounded by the shapes, whatever the number of threads. Values, and with them o,
// may have heads of another width than queries and keys.
//
// A call may be for some of the queries (rows of q, o and lse) and some of the keys (rows of k and
// v, of which a sequence may have another number): then it reads and writes those rows alone.
// Causal: the last of the queries sees all of the keys, each one before it one key less.
enum class AttentionMask { Causal, None };
struct AttentionShape {
  std::int64_t sequence = 0;                               // S
  std::int64_t heads = 0;                                  // query heads
  std::int64_t groups = 0;                                 // key/value heads; divides heads
  std::int64_t head_width = 0;                             // d
  float scale = 1;                                         // of the scores, usually 1 / sqrt(d)
  std::optional<std::int64_t> value_width = std::nullopt;  // of a value head; null: d
  std::optional<SequenceRows> queries = std::nullopt, keys = std::nullopt;  // null: all S
  AttentionMask mask = AttentionMask::Causal;

  SequenceRows query_rows() const { return queries.value_or(SequenceRows{sequence, 0, sequence}); }
  SequenceRows key_rows() const { return keys.value_or(SequenceRows{sequence, 0, sequence}); }
  // Whether all rows of a sequence meet each other.
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
// Of the same queries over other keys: (part, part_lse) is taken into (sum_TO in fp32, lse), in the
// rows of the shape's queries. The gradients of a part are those of attention_dgrad with the o and
// lse of all keys.
void attention_merge(Stream&,
                     Tensor sum_TO,
                     Tensor lse_HT,
                     Tensor part_TO,
                     Tensor part_lse_HT,
                     const AttentionShape&);

// SwiGLU on h = (gate | up): y = silu(gate) * up.
void swiglu_forward(Stream&, Tensor y_TF, Tensor h_T2F);
void swiglu_dgrad(Stream&, Tensor dh_T2F, Tensor dy_TF, Tensor h_T2F);
// The same times a weight a row (fp32): the router's probability, applied between activation and
// FC2.
void weighted_swiglu_forward(Stream&, Tensor y_RF, Tensor h_R2F, Tensor p_R);
void weighted_swiglu_dgrad(Stream&,
                           Tensor dh_R2F,
                           Tensor dp_R,
                           Tensor dy_RF,
                           Tensor h_R2F,
                           Tensor p_R);

// Gate: y = x * sigmoid(g) with one logit g a row, fp32.
void gate_forward(Stream&, Tensor y_TD, Tensor x_TD, Tensor g_T);
void gate_dgrad(Stream&, Tensor dx_TD, Tensor dg_T, Tensor dy_TD, Tensor x_TD, Tensor g_T);

// Where ranks share a vocabulary: how many ids come before the V of this rank, and how many behind.
struct OtherIds {
  std::int64_t before = 0, behind = 0;
};

// An id of another rank gives zeros, and adds nothing to the gradient. wgrad skips negative ids.
void embedding_forward(Stream&, Tensor x_TD, Tensor table_VD, Tensor ids_T, const OtherIds& = {});
void embedding_wgrad(Stream&,
                     Tensor dtable_VD,
                     Tensor dx_TD,
                     Tensor ids_T,
                     Write,
                     const OtherIds& = {});

// Cross entropy of each row with its label (int32; negative: ignored, loss 0, no gradient) in two
// steps, between which ranks that share the vocabulary exchange what the first one wrote. All fp32.
//
// sums: of this rank's logits the logarithm of the sum of e^logit, and the logit of the label, zero
// where it is not among them.
// forward: the loss, and lse over the whole vocabulary, from the sums of P ranks, (P T, 2), one
// rank after the other. Of one rank, lse is that of its sums to the bit.
// dgrad: dlogits = scale * (softmax - one hot), fp32 or bf16, in memory of its own or over the
// logits: then each of its rows begins where theirs does (logits, or logits.front_halves()).
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

// Router: the k best experts of each token, emitted in ascending order of expert, with
// probabilities. Equal scores prefer the lower expert. All fp32; experts int32.
//
// The score of an expert is its part of a softmax, or a function of its own logit alone. Where
// there is a bias_E (undefined: none) it is added to the score for the selection, and only for it.
enum class Score { Softmax, Sigmoid, SqrtSoftplus };
// E experts in `groups` of neighbours: a token keeps its `kept` best groups, a group being as good
// as the sum of its `counted` best experts, and chooses its experts in those.
struct GroupLimit {
  std::int64_t groups = 1, kept = 1, counted = 1;
};
struct TopK {
  enum class Softmax { BeforeSelection, AfterSelection };  // over all experts, over the chosen
  enum class Renormalise { No, Yes };  // to sum 1; after-selection probabilities already do
  Score score = Score::Softmax;
  Softmax softmax = Softmax::AfterSelection;
  Renormalise renormalise = Renormalise::No;
  GroupLimit groups = {};
  float factor = 1;  // of the probabilities
};
void top_k_forward(Stream&,
                   Tensor p_Tk,
                   Tensor experts_Tk,
                   Tensor logits_TE,
                   Tensor bias_E,
                   const TopK&);
// The probabilities that top_k_forward gives with its choice, for experts that were chosen
// elsewhere: different ones for each token, in any order, in whatever groups. Its gradient is
// top_k_dgrad.
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

// Capacity: an expert keeps at most `capacity` of the slots that chose it, the most probable ones
// or those of the first tokens; kept_experts and kept_p are the choice with -1 and 0 in the slots
// that are dropped, and dropped_1 (int64) grows by their number. dgrad: no gradient passes a
// dropped slot.
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

// Runs of neighbouring tokens that are counted apart: token t is of run (first + t) / length. As
// they are: one run of all.
struct TokenRuns {
  std::int64_t first = 0, length = std::numeric_limits<std::int64_t>::max();
};
// Grows counts_GE (int64) by the slots of each expert, for each of G runs of tokens.
void count_experts(Stream&, Tensor counts_GE, Tensor experts_Tk, const TokenRuns&);
// Moves the bias (fp32) of each expert by `rate`: up where it has fewer rows than the mean of the
// experts, down where it has more.
void move_bias(Stream&, Tensor bias_E, Tensor counts_E, float rate);

// y = x times noise between 1 - epsilon and 1 + epsilon, a function of (key, token, column). It is
// its own dgrad.
struct Noise {
  std::uint64_t key = 0;
  RowTokens tokens = {};
};
void jitter(Stream&, Tensor y_TD, Tensor x_TD, float epsilon, const Noise&);
// Normal draws in place of logits, a function of (key, token, expert), plus a bias for each expert
// with `deviation`, a function of (expert_key, expert).
struct RandomLogits {
  Noise noise;
  std::uint64_t expert_key = 0;
  float deviation = 0;
};
void random_logits(Stream&, Tensor logits_TE, const RandomLogits&);

// Load-balancing loss E / T * sum_te s_te f_te, fp32, without coefficient: s is a token's scores
// over all experts, scaled to sum 1; f an expert's share of the rows (counts_GE, int64) that are
// counted for the token's run, of G. It is 1 where either is even. dgrad assigns scale * d, the
// counts being constants. Without tokens these losses are 0.
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

// Rows of tokens. What the sorts read may have come from other ranks: numbers that do not fit are a
// fault, and a SystemError. A choice of -1 is none (dropped, or of somebody else).
//
// `choose_shards`: of a token's choices and their probabilities a copy for each shard of the
// expert. A rank holds one shard of each of `experts` neighbours; the `shards` ranks that share
// them follow each other, and shard s of expert e is number (e / experts * shards + s) * experts +
// e % experts. A token's copies ascend by rank; copy_Sn (int32) has the places of each slot's
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
// `sort_by_expert`: the slots whose expert is in [first, first + E), by expert, stable in token
// order: token_R[r] is the token of row r, slot_R[r] its flat index (token * k + j), row_Tk[t, j]
// the row of slot j; counts_E rows an expert. Room that no row takes, and slots without a row, are
// -1. Padded: every expert has R / E rows of room of its own. int32, counts int64.
enum class Room { Packed, Padded };
void sort_by_expert(Stream&,
                    Tensor row_Tk,
                    Tensor slot_R,
                    Tensor token_R,
                    Tensor counts_E,
                    Tensor experts_Tk,
                    std::int64_t first = 0,
                    Room room = Room::Packed);
// `sort_by_group`: one row for each token and each group of `width` experts it chose from (group g
// has experts first + g * width and on), by group, stable in token order: token_R[r] is the token
// of row r, choice_Rk[r] its experts of that group (-1 for the others), row_Tm[t] the rows of token
// t in order, counts_G rows a group. A token's experts ascend. Room that no row takes is -1.
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
// rows_G tokens that chose from a group, choices_G slots in all: int64.
void count_by_group(Stream&,
                    Tensor rows_G,
                    Tensor choices_G,
                    Tensor experts_Tk,
                    const ExpertGroups&);
// p_Rk[r, j] = p_Tk[token_R[r], j] where choice_Rk[r, j] is one, else 0. fp32.
void gather_choices(Stream&, Tensor p_Rk, Tensor p_Tk, Tensor token_R, Tensor choice_Rk);
// rows_L[l] = sum over ranks g of counts_GE[g, first + l]; int64, counts may be strided.
void sum_counts(Stream&, Tensor rows_L, Tensor counts_GE, std::int64_t first);
// Counts (int64, below 2^40) of one member of a group for its others: `seal_counts` puts a code
// into their upper bits, `open_counts` takes it out of those of all members (SystemError naming the
// member whose numbers did not arrive as they were sent). In place.
void seal_counts(Stream&, Tensor counts_N, std::int64_t member);
void open_counts(Stream&, Tensor counts_GN);

// Where rows go in two hops: across machines to the rank with the same index, then within the
// machine. counts_GC has one line a rank (int64, may be strided), as that rank counted its own
// tokens: rows for each machine, rows for each rank (only where a machine has several), slots for
// each rank. Writes `splits`: rows this rank sends across to each machine, receives across from
// each, sends within to each, receives within from each, then the slots that arrive here. Where any
// rank would get more than `budget` slots (0: no budget), all rows are 0 and overflow_1 (fp64;
// undefined without a budget) is one more.
struct Hops {
  std::int64_t ranks = 1, per_machine = 1, rank = 0;
  std::int64_t most_tokens = 0;   // that a rank may bring
  std::int64_t most_choices = 1;  // of a token, anywhere
  std::int64_t most_local = 1;    // of a token, among the experts of one rank
  std::int64_t budget = 0;

  std::int64_t machines() const { return ranks / per_machine; }
  std::int64_t counts() const { return machines() + (per_machine > 1 ? ranks : 0) + ranks; }
  std::int64_t splits() const { return 2 * machines() + 2 * per_machine + 1; }
};
void plan_hops(Stream&, Tensor splits, Tensor overflow_1, Tensor counts_GC, const Hops&);

// y[r] = x[index[r]] for matrices (any dtype) and for vectors; zero where the index is -1.
void gather_rows(Stream&, Tensor y_RD, Tensor x_TD, Tensor index_R);
// y[t] = sum over j of x[index[t, j]], j ascending, in fp32; an index of -1 adds nothing. y may be
// fp32 where x is not. Where there is a residual_TD (undefined: none; y of its and x's dtype) it is
// added last, before the sum is rounded.
void sum_rows(Stream&, Tensor y_TD, Tensor x_RD, Tensor index_Tk, Tensor residual_TD = {});
// Copies blocks of whole rows; `to` blocks do not overlap. Works for vectors (a row is one element)
// too.
struct RowBlock {
  std::int64_t from = 0, to = 0, rows = 0;
};
void copy_rows(Stream&, Tensor y, Tensor x, std::span<const RowBlock> blocks);

// y += x in the rows named, y in fp32; matrices.
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
// How many elements of a vector are zero, of either sign; count_1 is fp64.
void count_zeros(Stream&, Tensor count_1, Tensor x_N, Write write);

// AdamW with decoupled decay on contiguous ranges; `gradient_scale` multiplies the gradient (fp32
// or bf16) first, which stays as it is. weights: fp32 (and then master is the same tensor), or bf16
// rounded from an fp32 master, or bf16 with a master of int16: then the fp32 master is the weight
// and this remainder (tensor/narrow_numbers.h), or bf16 rounded from an fp16 master as that header
// has it. A moment is fp32, bf16, or fp16 as that header has it. Arithmetic is fp32 whatever lies
// in memory; what was computed is rounded when it is kept.
struct ElementRun {
  std::int64_t begin = 0, end = 0;
};
struct AdamW {
  float learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  float gradient_scale = 1;
  std::int64_t step = 1;                   // for the bias correction, from 1
  std::vector<ElementRun> undecayed = {};  // without decay; in order, none twice
};
// fp16 masters of bf16 weights.
void masters_in_half(Stream&, Tensor master_N, Tensor weights_N);
void adamw(Stream&,
           Tensor weights_N,
           Tensor master_N,
           Tensor moment1_N,
           Tensor moment2_N,
           Tensor gradient_N,
           const AdamW&);

}  // namespace weft::kernels
