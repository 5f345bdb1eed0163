// config.h: configuration values, set by the host program before first use, else read from the environment at first
// use.
//
// Every key stands in a table (config.cpp) with its check. An unreadable value is an error at first use; the message
// names key, value and allowed values. If a variable changes after first use, the change has no effect, and the
// library warns once. An empty variable counts as unset.
#pragma once

#include "core/base/fork.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace yoke {

// Returns the value, or nullptr if it is neither set nor in the environment. Borrowed for the life of the library.
// This call is the key's first use: the value is fixed from here on. Raises YOKE_E_VALUE for an unknown key or an
// unreadable value.
const char *config(std::string_view key);

// Returns the value, or the key's default in the table if there is no value. Raises the same errors as config.
const char *config_or_default(std::string_view key);

// Returns the same value without fixing it: the program may still set the key afterwards.
const char *peek_config(std::string_view key);

// Returns the origin of the value: the name of a variable (the key's own, or a variable of core/base/foreign.h), "the
// program", or "" if the value is not set.
std::string config_origin(std::string_view key);

// Raises YOKE_E_STATE if the key was used already, YOKE_E_VALUE as above.
void set_config(std::string_view key, std::string_view value);

// Raises for the first variable with an unreadable value; does not count as a use.
void check_config();

// Error that check_config would raise for a variable. config_problems returns all, in the order of the settings.
struct ConfigProblem {
    std::string key, text;
};
std::vector<ConfigProblem> config_problems();

// Returns variables of the environment that are probably misspelt settings: "YOKE_DEVCE", "YOKE_DEVICE".
std::vector<std::pair<std::string, std::string>> misspelt_variables();

// Warns of these, once in a process.
void warn_of_misspelt_variables();

// Warns of variables of the environment changed after first use, once for each variable.
void warn_of_late_changes();

// Returns the same to callers that report nothing: the default also for an unreadable value, nullptr for an unknown
// key. Raises std::bad_alloc alone.
const char *try_config(std::string_view key);

// Switch of the process: the program's setting, else whether the key's value or default is "1", read at first use.
class Switch {
public:
    // Function returning the key's value: config_or_default, or try_config if the caller cannot report an unreadable
    // value.
    using Ask = const char *(*)(std::string_view key);
    constexpr explicit Switch(const char *key, Ask ask = config_or_default) : key_(key), ask_(ask)
    {
    }

    // Costs a single comparison if the switch is off. Raises the errors of `ask`.
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

// Whole number of the process, 0 or more: the program's setting, else the key's value or default, read at first use.
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

// Returns the number of processors that this process may keep busy, by its affinity and by the quota of its control
// groups.
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
