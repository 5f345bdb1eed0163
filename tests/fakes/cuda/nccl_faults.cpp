// Faults that tests ask of the fake libnccl, and reports to tests. See fake.h.
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {
namespace {

// State without destruction, because threads may fail until the process ends.
struct Told {
    std::mutex mutex;
    std::map<std::string, int> counts;  // by names of calls
    std::string error;                  // the last
};
Told &told()
{
    static Told *const only = new Told;
    return *only;
}

int count(const char *call)
{
    const std::lock_guard lock(told().mutex);
    return ++told().counts[call];
}

// Returns the words of a list behind the "NAME[#RANK][@N]=" that matches a call, or null.
const char *find_fault(const char *list, const char *call, const ncclComm *comm, int nth)
{
    const size_t length = strlen(call);
    for (; list && *list; list = strchr(list, ','), list = list ? list + 1 : nullptr) {
        if (strncmp(list, call, length) != 0) continue;
        char *rest = const_cast<char *>(list) + length;
        int wanted = nth;
        if (*rest == '#') {
            const long rank = strtol(rest + 1, &rest, 10);
            if (!comm || !comm->member || comm->member->rank != rank) continue;
            wanted = comm->counts.at(call);
        }
        if (*rest == '@' && strtol(rest + 1, &rest, 10) != wanted) continue;
        if (*rest == '=') return rest + 1;
    }
    return nullptr;
}

ncclResult_t act(const char *call, const char *what)
{
    if (strncmp(what, "hang", 4) == 0)
        for (;;) pause();
    if (strncmp(what, "slow:", 5) == 0) {
        std::this_thread::sleep_for(std::chrono::duration<double>(strtod(what + 5, nullptr)));
        return ncclSuccess;
    }
    const auto result = static_cast<ncclResult_t>(atoi(what));
    return refuse(result, "%s: a failure that the test asked for", call);
}

std::atomic<int> g_held[kHeldKinds];

}  // namespace

ncclResult_t refuse(ncclResult_t result, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "fake NCCL: %s\n", text);
    const std::lock_guard lock(told().mutex);
    told().error = text;
    return result;
}

const char *last_error()
{
    static thread_local char text[400];
    const std::lock_guard lock(told().mutex);
    snprintf(text, sizeof text, "%s", told().error.c_str());
    return text;
}

ncclResult_t fault(const char *call, ncclComm *comm)
{
    const int nth = count(call);
    if (comm) ++comm->counts[call];
    if (const int asked = fault_of(call))
        return refuse(static_cast<ncclResult_t>(asked), "%s: a failure that the test asked for",
                      call);
    const char *const what = find_fault(getenv("FAKE_NCCL_FAIL"), call, comm, nth);
    return what ? act(call, what) : ncclSuccess;
}

int polls_of_a_call()
{
    const char *const setting = getenv("FAKE_NCCL_IN_PROGRESS");
    return setting ? atoi(setting) : 1;
}

std::chrono::milliseconds lateness_of_abort()
{
    const char *const setting = getenv("FAKE_NCCL_ABORT_LATE");
    return std::chrono::milliseconds(setting ? atoi(setting) : 0);
}

bool has_windows()
{
    return !getenv("FAKE_NCCL_NO_WINDOWS");
}

bool is_stuck(int rank, int call)
{
    int whose = 0, first = 0;
    const char *const setting = getenv("FAKE_NCCL_STUCK");
    return setting && sscanf(setting, "%d@%d", &whose, &first) == 2 && rank == whose &&
           call >= first;
}

ncclResult_t async_error(int rank, int call)
{
    int whose = 0, first = 0, error = ncclRemoteError;
    const char *const setting = getenv("FAKE_NCCL_ASYNC");
    const bool is_asked = setting && sscanf(setting, "%d@%d=%d", &first, &whose, &error) >= 2;
    return is_asked && rank == whose && call >= first ? static_cast<ncclResult_t>(error)
                                                      : ncclSuccess;
}

void hold(Held kind, int change)
{
    static const auto tell = driver_symbol<decltype(&fake_hold)>("fake_hold");
    g_held[kind] += change;
    if (tell && kind != kBlocks) tell(FAKE_HANDLES, change);  // the runtime counts the blocks
}

}  // namespace yoke::fake

using namespace yoke::fake;

#define EXPORT extern "C" __attribute__((visibility("default")))

// Returns the number of held resources that the library gave out.
EXPORT int fake_nccl_held()
{
    int sum = 0;
    for (const auto &held : g_held) sum += held;
    return sum;
}

// Restarts the counts of calls for FAKE_NCCL_FAIL.
EXPORT void fake_nccl_reset()
{
    const std::lock_guard lock(told().mutex);
    told().counts.clear();
}

__attribute__((destructor)) static void tell_leaks()
{
    const char *const setting = getenv("FAKE_NCCL_LEAKS");
    if (!setting || *setting != '1' || !fake_nccl_held()) return;
    fprintf(stderr,
            "fake NCCL: left behind: %d communicators, %d windows, %d registrations, %d blocks\n",
            g_held[kComms].load(), g_held[kWindowsHeld].load(), g_held[kRegistrations].load(),
            g_held[kBlocks].load());
}
