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

// Returns the value as config() does, but does not fix the value: the program may still set the key afterwards.
const char *peek_config(std::string_view key);

// Returns the origin of the value: the name of a variable (the key's own, or a variable of core/base/foreign.h), "the
// program", or "" if the value is not set.
std::string config_origin(std::string_view key);

// Sets a key for the program; an empty value counts as unset, whatever the environment has. Raises YOKE_E_STATE if
// the key was used already, and YOKE_E_VALUE for an unknown key or an unreadable value.
void set_config(std::string_view key, std::string_view value);

// Raises YOKE_E_VALUE for the first key with an unreadable value; does not count as a use.
void check_config();

// Error that check_config would raise for a variable. config_problems returns all, in the order of the settings.
struct ConfigProblem {
    std::string key, text;
};
std::vector<ConfigProblem> config_problems();

// Returns variables of the environment that are probably misspelt settings, each with the setting that was meant:
// "YOKE_DEVCE", "YOKE_DEVICE".
std::vector<std::pair<std::string, std::string>> misspelt_variables();

// Warns of misspelt_variables(), once in a process.
void warn_of_misspelt_variables();

// Warns of variables of the environment changed after first use, once for each variable.
void warn_of_late_changes();

// Returns the value or default as config_or_default() does, for callers that report no errors. An unreadable value
// counts as unset, and an unknown key gives nullptr. Raises only std::bad_alloc.
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

    // Returns whether the switch is on, and reads its value at first use. Costs a single comparison if the switch is
    // off. Raises the errors of `ask`.
    bool is_on()
    {
        const int known = state_.load(std::memory_order_relaxed);
        return known != kOff && (known == kOn || read());
    }
    // Returns whether the switch was set or read, and its value is `on`.
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

    // Returns the number, and reads its value at first use. Raises the errors of config().
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

// Returns the number of threads for CPU work: the calling thread's own number, else that of set_num_threads,
// YOKE_NUM_THREADS or OMP_NUM_THREADS, else usable_processors().
int32_t num_threads();

// Sets the number of threads for the whole process; 0 restores the default. Raises YOKE_E_VALUE below 0 and above
// 1024.
void set_num_threads(int32_t threads);

namespace detail {
// Returns the first number of OMP_NUM_THREADS ("4,2"), at most 1024; 0 if there is no such number.
int32_t leading_count(const char *text) noexcept;
}  // namespace detail

}  // namespace yoke
