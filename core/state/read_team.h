// read_team.h: tensors are read from files by as many threads as work on the CPU has.
//
// New memory costs its clearing beside the copy from the page cache, and one thread does both at a fraction of what
// memory can carry.
#pragma once

#include "core/state/read_file.h"
#include "core/tensor/tensor.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace yoke {

class ReadTeam {
public:
    ReadTeam() = default;
    ~ReadTeam();
    ReadTeam(const ReadTeam &) = delete;
    ReadTeam &operator=(const ReadTeam &) = delete;

    // Begins to read bytes of the file, from `from` on, into a tensor in host memory. All bytes are there when
    // finish() returns; `file` lives until then.
    void read(const ReadFile &file, uint64_t from, const Tensor &to);
    // Reads in this thread too, until all bytes are there. Raises the first failure.
    void finish();

private:
    struct Part {
        const ReadFile *file;
        uint64_t from;
        Tensor to;  // keeps the tensor alive if the caller gives up the load
        char *data;
        size_t bytes;
    };

    // Starts threads, as many as the bytes of all reads justify. The caller holds the lock, for read_parts() too.
    void recruit();
    void read_parts(std::unique_lock<std::mutex> &lock);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Part> parts_;
    std::vector<std::thread> threads_;
    size_t bytes_ = 0;  // sum of all reads
    int reading_ = 0;   // parts now being read
    bool is_over_ = false;
    std::exception_ptr failure_;
};

}  // namespace yoke
