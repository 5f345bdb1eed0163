// Races of a launch's blocks on global memory.
//
// With YOKE_EMU_RACES=1 every launch runs twice over the same memory, its blocks in one order and then in the opposite
// one. Pages are kept from writing, so that the first write of a block to each is seen; what it has changed is known to
// the byte when the block has ended. Held against a kernel, wherever two blocks of a launch meet without an atomic:
//  * a byte that both of them change;
//  * a byte that is another one when the order of blocks is: what one has written another has read, or written over.
//
// Not seen: a write that changes nothing (that of one value by two blocks among them), and a read on which nothing
// depends. Of a launch with atomics on global memory only the first is held against it, bytes of its atomics aside:
// what it leaves may well depend on who came first (places in a table, links of a list), and be right all the same.
// It costs a launch its double and some 5 microseconds for each page that a block writes.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace yoke::emu {

// Memory that belongs to nobody else down to its last page.
struct Span {
    char *begin;
    size_t bytes;
};

bool watches_races();

// Runs a kernel as run() does, twice. False, with the finding on stderr, too where its blocks race on `memory`;
// `operands` are what a finding counts bytes in.
bool run_watched(const char *name, const std::vector<Span> &memory,
                 const std::vector<Span> &operands, dim3 grid, dim3 block, size_t shared_bytes,
                 const std::function<void()> &kernel);

// Of an atomic of the kernel that runs now.
void note_atomic(const void *place, size_t bytes);

}  // namespace yoke::emu
