// work.h: what a program may be at when it forks or ends: one piece of each kind of work, over objects of its own.
#pragma once

#include <cstdint>

namespace hostile {

// Kinds of work, by number; each piece is small, so that whatever interrupts it finds it anywhere.
inline constexpr int kKinds = 10;
extern const char *const kKindNames[kKinds];

// Does one piece. True if every call gave what it should; where `ending` (the process is on its way out) an error is an
// answer as well, and only a result that is wrong is not.
bool do_piece(int kind, bool ending);

}  // namespace hostile
