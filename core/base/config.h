// config.h: configuration values: set by the host before first use, else read from the environment
// at first use.
//
// Every key stands in one table (config.cpp) with its check. A value that cannot be read is an error
// at first use that names key, value and what is allowed. A change of a variable after first use has
// no effect and is warned of once. An empty variable counts as one that is not set.
#pragma once

#include "core/base/fork.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// The value, or nullptr when it is neither set nor in the environment. Borrowed for the life of the
// library. This is the key's first use: from here on its value stands. Raises YOKE_E_VALUE for a key
// that does not exist or a value that cannot be read.
const char *config(std::string_view key);

// Returns the value; where there is none, the default that the table has for the key. Raises as config does.
const char *config_or_default(std::string_view key);

// The same value, but only looked at: it may still be set afterwards.
const char *peek_config(std::string_view key);

// Who decides it: the name of a variable, the key's own or one of core/base/foreign.h; "the program"; "" where nobody
// does.
std::string config_origin(std::string_view key);

// Raises YOKE_E_STATE if the key was used already, YOKE_E_VALUE as above.
void set_config(std::string_view key, std::string_view value);

// Raises for the first variable that is set to something that cannot be read, uses none.
void check_config();

// What it would raise for each such variable, in the order of the settings.
struct ConfigProblem {
    std::string key, text;
};
std::vector<ConfigProblem> config_problems();

// Variables of the environment that are no settings but probably meant as one: "YOKE_DEVCE", "YOKE_DEVICE".
std::vector<std::pair<std::string, std::string>> misspelt_variables();

// Warns of these, once in a process.
void warn_of_misspelt_variables();

// Warns, once for each, of variables of the environment that changed after their first use.
void warn_of_late_changes();

// Returns the same to callers that report nothing: the default also for an unreadable value, nullptr for an unknown
// key. Raises std::bad_alloc alone.
const char *try_config(std::string_view key);

// A switch of the process: what the program set, else whether the key's value or default is "1", which is read at first
// use.
class Switch {
public:
    // Function that tells the key's value: config_or_default, or try_config where nobody can be told of an
    // unreadable value.
    using Ask = const char *(*)(std::string_view key);
    constexpr explicit Switch(const char *key, Ask ask = config_or_default) : key_(key), ask_(ask)
    {
    }

    // One comparison where it is off. Raises what asking raises.
    bool is_on()
    {
        const int known = state_.load(std::memory_order_relaxed);
        return known != kOff && (known == kOn || read());
    }
    // Whether it was set or read, and is so.
    bool is_known_as(bool on) const noexcept
    {
        return state_.load(std::memory_order_relaxed) == (on ? kOn : kOff);
    }
    void set(bool on) noexcept { state_.store(on ? kOn : kOff); }

private:
    enum State : int { kUnread = -1, kOff, kOn };
    __attribute__((cold)) bool read();

    const char *key_;
    Ask ask_;
    std::atomic<int> state_{kUnread};
};

// A whole number of the process, 0 or more: what the program set, else the key's value or default, which is read at
// first use.
class Number {
public:
    constexpr explicit Number(const char *key) : key_(key) {}

    // Raises what config() raises.
    int64_t get()
    {
        const int64_t known = value_.load(std::memory_order_relaxed);
        return known != kUnread ? known : read();
    }
    void set(int64_t value) noexcept { value_.store(value); }

private:
    static constexpr int64_t kUnread = -1;
    __attribute__((cold)) int64_t read();

    const char *key_;
    std::atomic<int64_t> value_{kUnread};
};

// Processors that this process may keep busy: by its affinity, and by the quota of its control groups.
int32_t usable_processors();

// Threads for CPU work: set_num_threads, else YOKE_NUM_THREADS, OMP_NUM_THREADS, the
// cgroup quota, the cores it may run on.
int32_t num_threads();

// For the whole process; 0: back to the default. Raises YOKE_E_VALUE below 0 and above 1024.
void set_num_threads(int32_t threads);

namespace detail {
// The first number of OMP_NUM_THREADS ("4,2"), 0 if there is none.
int32_t leading_count(const char *text) noexcept;
}  // namespace detail

}  // namespace yoke
