// batch.h: a child process that makes a batch of random calls, and the outcome.
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
    int threads = 1;              // threads of a process, each with a world
    int64_t stack = 0;            // bytes of the calling thread's stack; 0: the usual
    int64_t memory = 128;         // MiB for the process beyond its first calls; 0: any
    bool no_new_threads = false;  // every further thread is refused by the system
    bool freed = false;           // freed and foreign handles too, under YOKE_CHECKS=1
    double patience = 60;         // longest seconds for a call
    std::string plant;            // a function whose calls crash; tests the search
    std::vector<int64_t> only;    // numbers of calls, without any others
};

// Outcome of a batch: the text is empty for success, else says the failure; with the number of the call.
struct Outcome {
    std::string wrong;
    int64_t number = 0;
    int64_t succeeded = 0;  // calls that gave YOKE_OK
    bool failed() const { return !wrong.empty(); }
};

// Makes calls 0 … count - 1 of a seed in a child, or only the calls in `kept`. With `told`, every call is written
// there as C. `kept` NULL: all.
Outcome run_batch(const Options &options, uint64_t seed, int64_t count,
                  const std::vector<int64_t> *kept, std::string *told);

// Returns the fewest calls with an equal failure.
std::vector<int64_t> shrink(const Options &options, uint64_t seed, const Outcome &outcome);

// A folder for what calls write and read.
void make_folder();
void remove_folder();

}  // namespace hostile
