// output.h: lines of many ranks on the standard streams of a process. Lines stay whole, and each begins with its
// rank's number.
//
// No write waits. Bytes not yet accepted by a stream are kept, and is_full() reports when enough are kept.
#pragma once

#include "core/launch/child.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// Open file to which lines go.
class LineSink {
public:
    explicit LineSink(int fd);

    void add(std::string_view text)
    {
        if (!is_broken()) waiting_.append(text);
    }
    bool is_empty() const noexcept { return is_broken() || at_ == waiting_.size(); }
    bool is_full() const noexcept;
    // Returns 0, or errno of the failed write: EPIPE if the reader has gone. After an error, the sink drops all text.
    int error() const noexcept { return error_; }
    bool is_broken() const noexcept { return error_ != 0; }
    int fd() const noexcept { return fd_; }
    // Writes a piece of the waiting bytes, and notes an error. The caller first waits until poll() reports free
    // space.
    void write_some();

private:
    const OwnedFile anew_;  // second open file of `fd`, on which writes never wait
    const int fd_;
    const bool is_socket_;
    const size_t piece_;  // bytes per write, accepted without waiting after poll()
    std::string waiting_;
    size_t at_ = 0;
    int error_ = 0;
};

// Splitter of a rank's stream into lines, each with the rank's prefix.
class LineMaker {
public:
    LineMaker(std::string prefix, LineSink &sink) : prefix_(std::move(prefix)), sink_(&sink) {}

    void add(std::string_view text);
    // Passes on an unterminated last line, with a line end.
    void finish();
    LineSink &sink() const noexcept { return *sink_; }

private:
    void put_line(std::string_view end);

    std::string prefix_, begun_;
    LineSink *sink_;
};

}  // namespace yoke
