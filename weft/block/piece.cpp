#include "weft/block/piece_table.h"

namespace weft::block {

std::string_view word(Piece piece) { return row_of(piece).word; }

std::string_view word(Part part) { return row_of(part).word; }

}  // namespace weft::block
