// rank.h: a rank of a start: its process, its output, and its end.
#pragma once

#include "core/base/deadline.h"
#include "core/launch/child.h"
#include "core/launch/error_file.h"
#include "core/launch/output.h"

#include <signal.h>

#include <optional>

namespace yoke {

// Seconds for processes that ranks leave behind.
inline constexpr double kLeftoverGrace = 1;

// Returns "exit code 3" or "signal 9 (SIGKILL)" for a status of waitpid().
std::string describe_end(int status);

class Rank {
public:
    // Makes a rank whose output goes to these sinks.
    Rank(int32_t number, LineSink &out, LineSink &err);
    Rank(const Rank &) = delete;
    Rank &operator=(const Rank &) = delete;
    // Kills the group and waits, so no process is left behind.
    ~Rank() { release(); }

    // Starts the process, with pipes of the rank as the outputs of `plan`. If the start fails, error() is the errno.
    void start(ChildPlan plan, std::string error_file);

    int32_t number() const noexcept { return number_; }
    pid_t process() const noexcept { return child_.process; }
    int error() const noexcept { return child_.error; }
    bool is_running() const noexcept { return child_.process > 0 && !status_; }
    const OwnedFile &ended() const noexcept { return child_.ended; }
    bool has_failed() const noexcept { return status_ && *status_ != 0; }
    int status() const noexcept { return status_.value_or(0); }

    // Looks whether the process has ended. If so, asks the other processes of its group to end. Raises YOKE_E_STATE
    // if another part of this process has waited for the child.
    void look();
    void signal_process(int signal) const noexcept;
    // Signals the rank and all processes of its group, even after the rank's own end.
    void signal_group(int signal) const noexcept;
    // Returns whether the process was not yet waited for. Until then, the system gives the number of process and
    // group to no other process.
    bool has_number() const noexcept { return has_number_; }
    // Returns when leftover processes are killed, after the rank's end.
    const Deadline &leftover_end() const noexcept { return leftover_end_; }
    // Kills the rest of the group, waits for the process, and so returns the number to the system.
    void release() noexcept;

    struct Stream {
        OwnedFile from;
        LineMaker lines;
        // Reads some of the waiting bytes, passes them to the sink, and returns their count. Reads no bytes if the
        // sink is full. Closes the stream at its end, and if the sink's reader has gone.
        size_t pass_on();
        // Returns the count of bytes that can be read now.
        size_t waiting() const noexcept;
        void finish();
    };
    Stream &out() noexcept { return out_; }
    Stream &err() noexcept { return err_; }

    ToldCause told() const { return read_error_file(error_file_); }
    std::string trace() const;
    // Returns the file that the rank touches after its dumps.
    std::string dump_mark() const { return error_file_ + kDumpedSuffix; }

private:
    void note_end(const siginfo_t &end) noexcept;

    int32_t number_;
    Stream out_, err_;
    Child child_;
    bool has_number_ = false;
    std::optional<int> status_;
    Deadline leftover_end_ = Deadline::after(0);
    std::string error_file_;
};

}  // namespace yoke
