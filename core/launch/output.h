// output.h: lines of many ranks on the standard streams of one process, whole ones, each behind the number of its rank.
//
// Nothing here waits: what a stream does not take yet is kept, and whoever asks for more is told that there is enough.
#pragma once

#include "core/launch/child.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// One open file that lines go to.
class LineSink {
public:
    explicit LineSink(int fd);

    void add(std::string_view text)
    {
        if (!is_broken()) waiting_.append(text);
    }
    bool is_empty() const noexcept { return is_broken() || at_ == waiting_.size(); }
    bool is_full() const noexcept;
    // It takes nothing any more, and what would go there is dropped: errno, EPIPE where its reader has gone; 0: it is
    // well.
    int error() const noexcept { return error_; }
    bool is_broken() const noexcept { return error_ != 0; }
    int fd() const noexcept { return fd_; }
    // Once poll() has said that it takes something.
    void write_some();

private:
    const OwnedFile anew_;  // the same file, where a write never waits
    const int fd_;
    const bool is_socket_;
    const size_t piece_;  // what it takes without waiting, once it takes something
    std::string waiting_;
    size_t at_ = 0;
    int error_ = 0;
};

// Makes lines of what one stream of a rank writes.
class LineMaker {
public:
    LineMaker(std::string prefix, LineSink &sink) : prefix_(std::move(prefix)), sink_(&sink) {}

    void add(std::string_view text);
    // An unterminated last line is one.
    void finish();
    LineSink &sink() const noexcept { return *sink_; }

private:
    void put_line(std::string_view end);

    std::string prefix_, begun_;
    LineSink *sink_;
};

}  // namespace yoke
