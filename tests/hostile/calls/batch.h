// batch.h: a process of its own that makes one batch of random calls, and what became of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hostile {

struct Options {
    uint64_t seed = 1;
    int64_t calls = 100000;
    int64_t batch = 20000;        // calls of one process
    int jobs = 1;                 // processes at a time
    int threads = 1;              // of a process, each with a world of its own
    int64_t stack = 0;            // bytes of the calling thread's stack; 0: the usual
    int64_t memory = 128;         // MiB that the process may take beyond its first calls; 0: any
    bool no_new_threads = false;  // every further thread is refused by the system
    bool freed = false;           // freed and foreign handles too, under YOKE_CHECKS=1
    double patience = 60;         // seconds that one call may take
    std::string plant;            // a function whose calls crash, to see that it is found
    std::vector<int64_t> only;    // these calls alone
};

// What a batch came to: empty text for nothing, else what was wrong, and at which call.
struct Outcome {
    std::string wrong;
    int64_t number = 0;
    int64_t succeeded = 0;  // calls that gave YOKE_OK
    bool failed() const { return !wrong.empty(); }
};

// Makes calls 0 … count - 1 of a seed, or those of them that `only` names, in a child. With `told` every call is
// written there as C. `kept` NULL: all.
Outcome run_batch(const Options &options, uint64_t seed, int64_t count,
                  const std::vector<int64_t> *kept, std::string *told);

// The least calls that give the same failure.
std::vector<int64_t> shrink(const Options &options, uint64_t seed, const Outcome &outcome);

// A folder for what calls write and read.
void make_folder();
void remove_folder();

}  // namespace hostile
