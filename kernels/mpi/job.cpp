#include "kernels/mpi/job.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "kernels/common/signals_blocked.h"
#include "kernels/mpi/detached_call.h"

namespace yoke::mpi {

namespace {

// Longest time of MPI_Finalize, which waits for all processes of the job. If a call was given up, a process may never
// arrive.
constexpr std::chrono::seconds kMostFinalize{10};

std::mutex g_starting;
std::atomic<pid_t> g_process{0};  // process in the job
std::atomic<bool> g_has_abandoned{false}, g_is_child{false};

bool asks(int (*what)(int *))
{
    int answer = 0;
    what(&answer);
    return answer != 0;
}

void finalize_within_bounds()
{
    const auto ended = std::make_shared<std::promise<void>>();
    std::future<void> end = ended->get_future();
    {
        const kernels::SignalsBlocked blocked;
        std::thread([ended] {
            MPI_Finalize();
            ended->set_value();
        }).detach();
    }
    if (end.wait_for(kMostFinalize) != std::future_status::ready)
        g_host->log(
            YOKE_LOG_WARN,
            "mpi: this process exits although MPI_Finalize has not returned; MPI_Finalize waits for another process of the job");
}

// Ends MPI at exit(), if Yoke has begun MPI in this process. If an operation was abandoned, MPI_Finalize gets a time
// limit.
void leave_job()
{
    if (!is_in_job()) return;
    if (!g_has_abandoned) {
        MPI_Finalize();
        return;
    }
    try {
        finalize_within_bounds();
    } catch (const std::exception &) {  // no thread to try it in
    }
}

yoke_status check_threads(int provided, const char *who)
{
    if (provided == MPI_THREAD_MULTIPLE) return YOKE_OK;
    static const char *const kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED",
                                          "MPI_THREAD_SERIALIZED"};
    const bool is_known = provided >= MPI_THREAD_SINGLE && provided <= MPI_THREAD_SERIALIZED;
    return fail(
        YOKE_E_UNSUPPORTED,
        "mpi: %s provides %s, but each group of ranks needs its own thread: request MPI_THREAD_MULTIPLE, or call init with backend 'cpu'",
        who, is_known ? kLevels[provided - MPI_THREAD_SINGLE] : "an unknown level of threads");
}

// State of this process's own MPI_Init_thread. It goes on even if its first caller has given up.
struct Beginning {
    int provided = MPI_THREAD_SINGLE;
    std::shared_ptr<DetachedCall> init_call;
};
Beginning *g_beginning = nullptr;  // with g_starting held; to the end of the process

int begin(Beginning &state)
{
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &state.provided);
    if (code != MPI_SUCCESS) return code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return code;
}

// Begins MPI in a detached thread, or returns the earlier beginning, or null if other code has begun MPI. The caller
// holds g_starting. No thread waits with this mutex held, because a hook of the host program runs during the wait and
// may call init.
Beginning *find_beginning()
{
    if (g_beginning || asks(MPI_Initialized)) return g_beginning;
    auto made = std::make_unique<Beginning>();
    made->init_call = DetachedCall::begin([state = made.get()] { return begin(*state); });
    g_beginning = made.release();
    return g_beginning;
}

yoke_status check_begun_by_others()
{
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    const yoke_status status = check_threads(provided, "the MPI that this process initialised");
    if (!status) g_process = getpid();
    return status;
}

yoke_status await_beginning(const Beginning &begun, const yoke_comm_member &member,
                            DetachedCall::Clock::time_point since)
{
    if (yoke_status status = begun.init_call->wait(
            member, since, "MPI_Init_thread",
            "MPI starts only when all processes of the job have called init, and some have not"))
        return status;
    if (g_process.exchange(getpid()) == 0) atexit(leave_job);
    return check_threads(begun.provided, "this MPI library");
}

}  // namespace

yoke_status join_job(const yoke_comm_member &member, DetachedCall::Clock::time_point since)
{
    if (g_is_child)  // in which another thread's lock may be held for ever
        return fail(
            YOKE_E_FORKED,
            "mpi: this process is a forked child, which does not belong to the MPI job of its parent");
    if (asks(MPI_Finalized))
        return fail(YOKE_E_STATE, "mpi: MPI_Finalize has been called in this process already");
    const Beginning *begun = nullptr;
    {
        const std::lock_guard lock(g_starting);
        begun = find_beginning();
    }
    return begun ? await_beginning(*begun, member, since) : check_begun_by_others();
}

bool is_in_job()
{
    return g_process == getpid() && !g_is_child && !asks(MPI_Finalized);
}

std::string job_name()
{
    // Variables of PMIx, of Open MPI 4's and MPICH's launchers. Slurm's variables follow.
    for (const char *variable :
         {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PALS_APID"})
        if (const char *value = getenv(variable)) return std::string(variable) + " " + value;
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    return job && step ? std::string("Slurm step ") + job + "." + step : "";
}

std::string library_name()
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string name(text);
    name = name.substr(0, name.find_first_of(",\n"));
    for (char &one : name)
        if (one == '\t') one = ' ';
    return name;
}

void note_abandoned()
{
    g_has_abandoned = true;
}

void note_fork()
{
    g_is_child = true;
}

}  // namespace yoke::mpi
