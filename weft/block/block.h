// Block: one piece of a layer, declared once.
//
// A block declares its parts, the weights that they read with their splits along axes, and each
// part's computation. Parameters, floating-point operations, bytes, nodes and prices follow from
// the declaration. Each block has a file of its name, with one function that makes it from widths
// (widths.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/shape.h"
#include "weft/block/load.h"
#include "weft/block/piece.h"
#include "weft/block/split.h"
#include "weft/block/widths.h"

namespace weft::block {

// Ranks that hold a weight. Dense: equal on every data-parallel rank. Expert: on the ranks that own
// the expert. Untrained: equal on every data-parallel rank, in fp32, without gradient and
// optimizer.
enum class Home { Dense, Expert, Untrained };

// Initial value of a weight.
enum class Start {
  Ones,      // zeros if untrained
  Zeros,     // a bias
  Product,   // random, with the model's deviation
  Residual,  // random, with the deviation of a product that adds to the residual stream
};

struct Weight {
  Part part = Part::None;  // part that reads it
  std::string_view name;   // "qkv.weight", after the block's name; of a norm: "norm"
  std::string_view kind;   // of a norm: ".weight" or ".bias"
  base::Shape shape;       // shape in the whole model
  std::vector<AxisSplit> splits = {};
  Home home = Home::Dense;
  Start start = Start::Product;

  std::int64_t elements() const { return shape.elements(); }
};

// Tokens or rows that an operation passes over, on each rank.
enum class Over {
  OwnTokens,    // the rank's share of its tensor-parallel group's
  GroupTokens,  // the tokens of the group
  Rows,         // tokens that came to the rank's experts, once for each that they chose
};

// Columns of a product that ranks share: tensor-parallel ranks, or the ranks of one expert.
enum class Shared { None, Out, In };

// A product with a matrix. Columns are those of the whole model.
struct Product {
  Part part = Part::None;
  double out = 0, in = 0;
  Shared shared = Shared::None;
  Over over = Over::GroupTokens;
  bool reads_norm = false;  // a norm makes its operand
  bool is_router = false;   // in fp32; the reference's FLOPs leave it out
};

// Operations limited by memory traffic.
enum class Elementwise {
  Norm,
  HeadNorm,     // norm of queries and keys
  LatentNorm,   // norm of compressed queries, keys and values
  StreamsNorm,  // norms of the streams that predict a token ahead
  Rotation,
  LatentRotation,  // with the copies that put turned and unturned channels side by side
  Scan,            // a convolution, and a state that every token changes
  OutputGate,
  Residual,
  Activation,
  RouterInput,  // widened to fp32
  Choice,       // top-k experts
  Lookup,
  Loss,
};

struct Pass {
  Part part = Part::None;
  Elementwise what = Elementwise::Norm;
  double channels = 0;  // per token or row, on all ranks
  Over over = Over::OwnTokens;
  bool is_shared = false;  // ranks share its channels
  double counted = 0;      // multiplications a token in the reference's FLOPs
};

// Scores and values over the tokens that a query sees. Channels add up over all heads.
struct AttentionCore {
  Part part = Part::Core;
  double heads = 0;
  double scores = 0, values = 0;
  double keys = 0;  // keys and values together, before heads share them
  double seen = 0;  // tokens, on average
};

// Handling of a tensor between the forward and the backward that reads it.
enum class Fate {
  Kept,    // stays
  Remade,  // recomputation drops it and makes it again
  Output,  // stays as input of the next piece, on the residual stream
  Shown,   // Remade and Output: later pieces of its layer read it
};

// Tensor that a part's forward makes, for its own backward or that of another part.
struct Slot {
  Part part = Part::None;
  Bytes bytes = {};
  Fate fate = Fate::Kept;
  // Part that an offload copies to the host; nullopt: all of it. The rest is recomputed from the
  // returned part.
  std::optional<Bytes> travels = std::nullopt;
};

// Bytes that a part's node sends to other ranks. Rows: those that leave the rank.
struct Sending {
  Part part = Part::None;
  Bytes forward = {}, backward = {};
  std::optional<Bytes> again = std::nullopt;  // in a recomputation; nullopt: as in the forward
};

struct Block {
  explicit Block(Piece of) : piece(of), name(word(of)) {}

  Piece piece;
  std::string_view name;         // prefix of its weights' names: "attention"
  std::vector<Part> parts = {};  // in forward order, each depending on the one before it
  std::vector<Weight> weights = {};
  // In the order of the forward, each kind on its own.
  std::vector<Product> products = {};
  std::vector<Pass> passes = {};
  std::optional<AttentionCore> core = std::nullopt;
  std::vector<Slot> slots = {};
  std::vector<Sending> sendings = {};

  // Adds a weight of `part`. Names are literals.
  void weight(Part part,
              std::string_view weight_name,
              const base::Shape& shape,
              Start start,
              std::vector<AxisSplit> splits = {},
              Home home = Home::Dense);
  // Adds a norm of `width` channels, with a bias if the model's norms have one.
  void norm(Part part,
            std::string_view weight_name,
            std::int64_t width,
            const Stream& stream,
            std::vector<AxisSplit> splits = {});
  void pass(Part part, Elementwise what, std::int64_t channels, Over over = Over::OwnTokens);
  // Over the tokens of the group, whose ranks share the channels.
  void shared_pass(Part part, Elementwise what, std::int64_t channels);
  void slot(Part part, Fate fate, const Bytes& bytes);
  void sends(Part part, const Bytes& forward, const Bytes& backward);
};

// "attention.qkv.weight", after the layer's own name.
std::string name_of(const Block& block, const Weight& weight);

// Multiplications of a token's forward; `choices`: number of its experts.
double multiplications(const Block& block, std::int64_t choices);

// Adds the block's products, between the token exchanges of tensor-parallel ranks.
void add_exchanged(Block& block, const Stream& stream, const std::vector<Part>& products);
// Adds products with a norm before them and the residual stream after them; `fate`: of the residual
// stream.
void add_sub_layer(Block& block,
                   const Stream& stream,
                   const std::vector<Part>& products,
                   Fate fate);

// Gather collects the tokens of the tensor-parallel group. Scatter sums the ranks' results and
// leaves each its share. Either way, a token's row goes to every other rank, or comes from it.
void add_gather(Block& block, const Stream& stream, Fate fate);
void add_scatter(Block& block, const Stream& stream);

// Bytes of one token of the residual stream.
Bytes stream_bytes(const Stream& stream);
// A norm keeps its output and one reciprocal deviation per token.
Bytes norm_bytes(const Stream& stream);
// Bytes between gather and scatter, where a rank has all tokens of its tensor-parallel group;
// counted per own token.
Bytes of_group(const Stream& stream, std::int64_t per_token);

}  // namespace weft::block
