// work.h: work of a program that forks or ends: a piece of each kind, over fresh objects.
#pragma once

#include <cstdint>

namespace hostile {

// Kinds of work, by number. Each piece is small, so an interruption may hit any part of the piece.
inline constexpr int kKinds = 10;
extern const char *const kKindNames[kKinds];

// Does a piece of work. Returns true if every call gave the right result. With `ending` (the process is about to end)
// an error is right, too, and only a wrong result is not.
bool do_piece(int kind, bool ending);

}  // namespace hostile
