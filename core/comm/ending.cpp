#include "core/comm/ending.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/text.h"
#include "core/launch/error_file.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>

namespace yoke {

namespace {

struct Ending {
    Mutex mutex{LockRank::kOther};
    char raised[2000] = "";
    int exit_code = 0;
    pid_t process = 0;  // the rank itself, not a forked child
};
Ending &the_ending = immortal<Ending>();

// Returns "its script raised ValueError: bad". The caller holds the lock.
std::string as_raised()
{
    return std::string("its script raised ") + the_ending.raised;
}

#ifdef __GLIBC__
void note_exit_code(int code) noexcept
{
    const std::lock_guard lock(the_ending.mutex);
    the_ending.exit_code = code;
    if (code == 0) *the_ending.raised = '\0';  // the script survived a reported error
}
#endif

}  // namespace

void note_raised(std::string_view what)
{
    std::string cause;
    bool was_raised = false, is_rank = false;
    {
        const std::lock_guard lock(the_ending.mutex);
        was_raised = *the_ending.raised;
        is_rank = the_ending.process == getpid();
        put(the_ending.raised, cut(what, sizeof the_ending.raised - 1));
        if (*the_ending.raised) cause = as_raised();
    }
    if (is_rank && !cause.empty()) tell_launcher_of_end(cause);
    if (is_rank && cause.empty() && was_raised) take_back_told();
}

std::string ending()
{
    const std::lock_guard lock(the_ending.mutex);
    if (*the_ending.raised) return as_raised();
    if (the_ending.exit_code == 0) return "";
    return "the process ended with exit code " + std::to_string(the_ending.exit_code);
}

void leave_at_exit(void (*leave)())
{
    {
        const std::lock_guard lock(the_ending.mutex);
        the_ending.process = getpid();
    }
#ifdef __GLIBC__
    const auto told = [](int code, void *argument) {
        note_exit_code(code & 0xff);  // the parent sees only these 8 bits
        reinterpret_cast<void (*)()>(argument)();
    };
    if (on_exit(told, reinterpret_cast<void *>(leave)) == 0) return;
#endif
    (void)atexit(leave);
}

}  // namespace yoke
