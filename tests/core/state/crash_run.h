// crash_run.h: a run that saves, with calls that may fail or be the last before a kill, and a log of the changes.
#pragma once

#include "tests/core/state/crash_states.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <utility>

namespace yoke::test {

class CrashRun {
public:
    CrashRun() : log_(folder_.path()), seam_(&log_)
    {
        seam_.fate = [this](const std::string &entry) {
            if (++calls_ == fail_at) return fault;
            if (is_killed_ || calls_ == kill_at) return is_killed_ = true, kDead;
            const auto found = lacking.find(entry);
            if (found != lacking.end()) return found->second;
            return entry == "exchange" && !can_exchange ? EINVAL : 0;
        };
    }
    CrashRun(const CrashRun &) = delete;
    CrashRun &operator=(const CrashRun &) = delete;

    const std::vector<Event> &events() const { return log_.events; }
    const TemporaryFolder &folder() const { return folder_; }
    // Facts about the last action.
    int calls() const { return calls_; }
    bool was_killed() const { return was_killed_; }
    const std::optional<Error> &error() const { return error_; }

    bool can_exchange = true;
    std::map<std::string, int> lacking;  // unsupported calls, each with its errno
    int kill_at = 0;  // the number of a call, from 1 on, counted anew for each thing that is done
    int fail_at = 0, fault = 0;  // number of a failing call, counted likewise, and its fault

protected:
    ~CrashRun() = default;

    // Changes the content of a name by `act`. After a kill, calls `bury` for the remains of the process.
    template <class Do, class Bury>
    void doing(const std::string &name, const std::string &content, const Do &act, const Bury &bury)
    {
        calls_ = 0;
        error_.reset();
        log_.begin(name, content);
        try {
            act();
        } catch (const Error &error) {
            EXPECT_TRUE(is_killed_ || fail_at) << error.what();
            if (!is_killed_) error_ = error;
        }
        if (is_killed_) bury();
        was_killed_ = std::exchange(is_killed_, false);
        if (!was_killed_ && !error_) log_.returned(name, content);
    }
    template <class Do>
    void doing(const std::string &name, const std::string &content, const Do &act)
    {
        doing(name, content, act, [] {});
    }

private:
    TemporaryFolder folder_;
    Log log_;
    Seam seam_;
    int calls_ = 0;
    bool is_killed_ = false, was_killed_ = false;
    std::optional<Error> error_;
};

}  // namespace yoke::test
