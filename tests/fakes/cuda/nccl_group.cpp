// How calls of the fake libnccl are done: at once or at a group's end, waited for or in progress. See nccl_fake.h.
#include <algorithm>
#include <thread>

#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {
namespace {

// Work for a single communicator.
struct Task {
    ncclComm *comm;
    std::vector<Step> steps;
    std::vector<Op> ops;  // calls of a single kernel, after the steps
    cudaStream_t stream = nullptr;
    bool is_stuck = false;
};
// Calls of this thread since ncclGroupStart(). Communicators are in the order of their first calls.
struct Group {
    int depth = 0;
    ncclResult_t error = ncclSuccess;
    std::vector<Task> tasks;
};
thread_local Group *t_group;  // null outside of a group

Task &task_of(ncclComm *comm)
{
    auto &tasks = t_group->tasks;
    const auto found = std::find_if(tasks.begin(), tasks.end(),
                                    [=](const Task &task) { return task.comm == comm; });
    if (found != tasks.end()) return *found;
    tasks.push_back({comm, {}, {}, nullptr, false});
    return tasks.back();
}

// Does steps until a step has no result yet. If a step fails, drops the rest.
std::optional<ncclResult_t> go_on(std::vector<Step> &steps)
{
    while (!steps.empty()) {
        const std::optional<ncclResult_t> result = steps.front()();
        if (!result) return std::nullopt;
        steps.erase(steps.begin());
        if (*result) steps.clear();
        if (*result) return result;
    }
    return ncclSuccess;
}

// Begins the task of a non-blocking communicator.
ncclResult_t begin(Task &task)
{
    task.comm->steps = std::move(task.steps);
    task.comm->polls = polls_of_a_call();
    return task.comm->polls ? ncclInProgress : poll(task.comm);
}

// Goes on with all tasks in turn, because a rank's task may wait for another rank's.
ncclResult_t wait_for_all(std::vector<Task> &tasks)
{
    ncclResult_t worst = ncclSuccess;
    for (bool is_waiting = true; is_waiting;) {
        is_waiting = false;
        for (Task &task : tasks) {
            const std::optional<ncclResult_t> result = go_on(task.steps);
            if (!result) is_waiting = true;
            if (result && *result) worst = *result;
        }
        if (is_waiting) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return worst;
}

ncclResult_t run(std::vector<Task> tasks)
{
    std::vector<Task> waited;
    ncclResult_t begun = ncclSuccess;
    for (Task &task : tasks) {
        if (!task.ops.empty())
            task.steps.push_back(
                [member = task.comm->member, ops = task.ops, stream = task.stream,
                 is_stuck = task.is_stuck] { return launch(member, ops, stream, is_stuck); });
        if (task.comm->is_blocking)
            waited.push_back(std::move(task));
        else if (const ncclResult_t result = begin(task); result && begun != ncclInProgress)
            begun = result;
        else if (result == ncclInProgress)
            begun = result;
    }
    const ncclResult_t worst = wait_for_all(waited);
    return worst ? worst : begun;
}

ncclResult_t add(ncclComm *comm, const Op &op, cudaStream_t stream, bool is_stuck)
{
    Task &task = task_of(comm);
    if (!task.ops.empty() && task.stream != stream)
        return refuse(ncclInvalidUsage,
                      "a group's calls of one communicator on two streams, which this fake lacks");
    task.ops.push_back(op);
    task.stream = stream;
    task.is_stuck |= is_stuck;
    return ncclSuccess;
}

}  // namespace

ncclResult_t spoil_group(ncclResult_t result)
{
    if (t_group && !t_group->error) t_group->error = result;
    return result;
}

ncclResult_t submit(ncclComm *comm, Step step)
{
    if (t_group) {
        task_of(comm).steps.push_back(std::move(step));
        return ncclSuccess;
    }
    return run({{comm, {std::move(step)}, {}, nullptr, false}});
}

ncclResult_t submit(ncclComm *comm, const Op &op, cudaStream_t stream, bool is_stuck)
{
    if (t_group) return spoil_group(add(comm, op, stream, is_stuck));
    return run({{comm, {}, {op}, stream, is_stuck}});
}

ncclResult_t poll(ncclComm *comm)
{
    if (comm->steps.empty()) return comm->error;
    if (comm->polls > 0) {
        --comm->polls;
        return ncclInProgress;
    }
    const std::optional<ncclResult_t> result = go_on(comm->steps);
    if (!result) return ncclInProgress;
    if (*result) comm->error = *result;
    const ncclResult_t told = comm->error;
    if (!told) comm->error = std::exchange(comm->later_error, ncclSuccess);
    return told;
}

ncclResult_t begin_group()
{
    if (!t_group) t_group = new Group;
    ++t_group->depth;
    return ncclSuccess;
}

ncclResult_t end_group()
{
    if (!t_group)
        return refuse(ncclInvalidUsage, "ncclGroupEnd: there was no ncclGroupStart before it");
    if (--t_group->depth) return ncclSuccess;
    spoil_group(check_context("ncclGroupEnd"));
    const std::unique_ptr<Group> group(std::exchange(t_group, nullptr));
    if (group->error) return group->error;
    std::vector<Task> &tasks = group->tasks;
    size_t entered = 0;
    while (entered < tasks.size() && enter(tasks[entered].comm)) ++entered;
    const ncclResult_t result =
        entered == tasks.size()
            ? run(tasks)
            : refuse(ncclInvalidUsage, "ncclGroupEnd: another thread uses a communicator");
    for (size_t i = 0; i < entered; ++i) leave(tasks[i].comm);
    return result;
}

}  // namespace yoke::fake
