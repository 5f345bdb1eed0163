// Races of a launch's blocks on global memory.
//
// With YOKE_EMU_RACES=1 every launch runs twice over the same memory, with its blocks in an order and then in the
// opposite order. Pages are write-protected, so the first write of a block to each page is seen. At the block's end,
// the changed bytes are known. If two blocks of a launch use a byte without an atomic, there is a finding for:
//  * a byte that both blocks change;
//  * a byte whose value depends on the order of blocks: a block has read or overwritten a byte of another block.
//
// Two cases are not seen: a write that changes no byte (for example, two blocks write equal values), and a read
// without effect. For a launch with atomics on global memory, only the first finding counts, without the bytes of the
// atomics. The result of such a launch may depend on the order (places in a table, links of a list) and still be
// right. The check doubles the cost of a launch, and adds some 5 microseconds for each page that a block writes.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace yoke::emu {

// Memory up to whole pages that no other block of memory shares.
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

// Notes an atomic of the running kernel.
void note_atomic(const void *place, size_t bytes);

}  // namespace yoke::emu
