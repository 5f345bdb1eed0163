// rank.h: one rank of a start: its process, what it writes, and how it ended.
#pragma once

#include "core/base/deadline.h"
#include "core/launch/child.h"
#include "core/launch/error_file.h"
#include "core/launch/output.h"

#include <signal.h>

#include <optional>

namespace yoke {

// Seconds for what ranks leave behind.
inline constexpr double kLeftoverGrace = 1;

// "exit code 3", "signal 9 (KILL)", of a status of waitpid().
std::string describe_end(int status);

class Rank {
public:
    // What it writes goes to these sinks.
    Rank(int32_t number, LineSink &out, LineSink &err);
    Rank(const Rank &) = delete;
    Rank &operator=(const Rank &) = delete;
    // Kills and waits: nobody is left behind.
    ~Rank() { release(); }

    // `plan` but for its outputs.
    void start(ChildPlan plan, std::string error_file);

    int32_t number() const noexcept { return number_; }
    pid_t process() const noexcept { return child_.process; }
    int error() const noexcept { return child_.error; }
    bool is_running() const noexcept { return child_.process > 0 && !status_; }
    const OwnedFile &ended() const noexcept { return child_.ended; }
    bool has_failed() const noexcept { return status_ && *status_ != 0; }
    int status() const noexcept { return status_.value_or(0); }

    // Looks whether it has ended, and then asks what it has started in its group to end. Raises YOKE_E_STATE where
    // another part of the process has taken the answer.
    void look();
    void signal_process(int signal) const noexcept;
    // Those as well that it has started, also when it has ended itself.
    void signal_group(int signal) const noexcept;
    // Its number, and its group's, is nobody else's: it is not waited for yet.
    bool has_number() const noexcept { return has_number_; }
    // How long what it has left behind has, once it has ended.
    const Deadline &leftover_end() const noexcept { return leftover_end_; }
    // Kills what is left of its group, and gives its number back to the system.
    void release() noexcept;

    struct Stream {
        OwnedFile from;
        LineMaker lines;
        // Reads some of what is there, and tells how many bytes. Nothing where the sink is full.
        size_t pass_on();
        // Bytes that are there.
        size_t waiting() const noexcept;
        void finish();
    };
    Stream &out() noexcept { return out_; }
    Stream &err() noexcept { return err_; }

    ToldCause told() const { return read_error_file(error_file_); }
    std::string trace() const;
    // The file that it touches behind its dumps.
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
