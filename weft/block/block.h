// A block: one piece of a layer, declared once.
//
// It says which parts the piece has, which weights they read and how axes split these, and what
// each part computes. Parameters, floating-point operations, bytes, nodes and prices follow from
// it, and say none of it again. Each block has a file of its name, with one function that makes it
// of widths (widths.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/shape.h"
#include "weft/block/load.h"
#include "weft/block/piece.h"
#include "weft/block/split.h"
#include "weft/block/widths.h"

namespace weft::block {

// Which ranks hold a weight. Dense: every data-parallel rank the same; Expert: the ranks that own
// the expert; Untrained: every data-parallel rank the same, in fp32, without gradient and
// optimizer.
enum class Home { Dense, Expert, Untrained };

// What a weight starts as.
enum class Start {
  Ones,      // or as zeros, where it is not trained
  Zeros,     // a bias
  Product,   // drawn, with the model's deviation
  Residual,  // drawn, with that of a product that adds to the residual stream
};

struct Weight {
  Part part = Part::None;  // reads it
  std::string name;        // "attention.qkv.weight", after the layer's own name
  base::Shape shape;       // of the whole model
  std::vector<AxisSplit> splits = {};
  Home home = Home::Dense;
  Start start = Start::Product;

  std::int64_t elements() const { return shape.elements(); }
};

enum class OperationKind {
  Product,      // of a matrix
  Attention,    // scores and values over the tokens that a query looks at
  Scan,         // a state that every token changes
  Elementwise,  // its time is that of reading and writing
};

// How often a token passes through an operation.
enum class Times {
  Token,   // once
  Choice,  // once for each expert that it chose
};

// What a part computes for one token of the whole model: ranks share it.
struct Operation {
  Part part = Part::None;
  OperationKind kind = OperationKind::Product;
  // Product: columns of its result and of its operand. Attention: channels of its scores and of its
  // values, of all heads. Scan, elementwise: multiplications, and 1.
  double out = 0, in = 1;
  double seen = 1;  // tokens that a query looks at, on average
  Times times = Times::Token;

  // Of one pass.
  double multiplications() const {
    return kind == OperationKind::Attention ? (out + in) * seen : out * in;
  }
};

// What becomes, after the forward, of a tensor that the backward reads.
enum class Fate {
  Kept,    // it stays
  Remade,  // a recomputation drops it and makes it again
  Output,  // it stays as the input of the next piece, on the residual stream
  Shown,   // both: pieces behind it in its layer read it
};

// A tensor that a part's forward makes and its backward, or that of another part, reads.
struct Slot {
  Part part = Part::None;
  Bytes bytes = {};
  Fate fate = Fate::Kept;
  // Of it, what goes to the host's memory where it is offloaded, unless all: the rest is made of
  // what came back.
  std::optional<Bytes> travels = std::nullopt;
};

// Bytes that a part's node sends to other ranks. Rows: those that leave the rank.
struct Sending {
  Part part = Part::None;
  Bytes forward = {}, backward = {};
  std::optional<Bytes> again = std::nullopt;  // a recomputation; nullopt: as the forward
};

struct Block {
  explicit Block(Piece of) : piece(of), name(word(of)) {}

  Piece piece;
  std::string name;              // begins the names of its weights
  std::vector<Part> parts = {};  // in forward order, each after the one before it
  std::vector<Weight> weights = {};
  std::vector<Operation> operations = {};
  std::vector<Slot> slots = {};
  std::vector<Sending> sendings = {};

  // Of `part`; `short_name` follows the block's.
  void weight(Part part,
              const std::string& short_name,
              const base::Shape& shape,
              Start start,
              std::vector<AxisSplit> splits = {},
              Home home = Home::Dense);
  // Of `width` channels, with a bias where the model's norms have one.
  void norm(Part part,
            const std::string& short_name,
            std::int64_t width,
            const Stream& stream,
            std::vector<AxisSplit> splits = {});
  void product(Part part, std::int64_t out, std::int64_t in, Times times = Times::Token);
  void attention(Part part, std::int64_t scores, std::int64_t values, double seen);
  void slot(Part part, Fate fate, const Bytes& bytes);
  void sends(Part part, const Bytes& forward, const Bytes& backward);
};

// Multiplications of a token's forward; `choices`: experts that it chose.
double multiplications(const Block& block, std::int64_t choices);

// Gives a block its parts: its products, between the exchanges of tokens that tensor-parallel ranks
// make around them.
void add_exchanged(Block& block, const Stream& stream, const std::vector<Part>& products);
// The same behind a norm and in front of the residual stream, which it hands on with `fate`.
void add_sub_layer(Block& block,
                   const Stream& stream,
                   const std::vector<Part>& products,
                   Fate fate);

// Collects the tokens of the tensor-parallel group, or sums what each rank made of them and leaves
// each its share: either way a token's row goes to every other rank, or comes from it.
void add_gather(Block& block, const Stream& stream, Fate fate);
void add_scatter(Block& block, const Stream& stream);

// Of one token of the residual stream.
Bytes stream_bytes(const Stream& stream);
// A norm keeps its output and one reciprocal deviation a token.
Bytes norm_bytes(const Stream& stream);
// Between gather and scatter a rank has the tokens of its whole tensor-parallel group: bytes of one
// of its own tokens where it has so many of each of them.
Bytes of_group(const Stream& stream, std::int64_t per_token);

}  // namespace weft::block
