// The part of a call that tries cuDNN's plans, where its launch asks for that.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "core/backend/ops.inc"
#include "kernels/cuda/host/cudnn/call.h"
#include "kernels/cuda/host/cudnn/status.h"
#include "kernels/cuda/host/cudnn/winner.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"
#include "kernels/cuda/host/tune.h"

namespace yoke::cuda {

namespace {

constexpr const char *kTunedPlan = "a plan of cuDNN's";
constexpr int kMostShapes = 64;  // of an op, in a process

// Whether one more shape of an op may be tried; the first that may not is told.
bool may_try(const yoke_launch *launch)
{
    static std::atomic<int> tried[YOKE_OP_COUNT];
    const int before = tried[launch->op].fetch_add(1, std::memory_order_relaxed);
    if (before == kMostShapes) {
        char line[160];
        snprintf(line, sizeof line,
                 "%s: cuDNN's plans for %d shapes were measured; others take its first from now on",
                 op_name(launch->op), kMostShapes);
        g_host->log(YOKE_LOG_WARN, line);
    }
    return before < kMostShapes;
}

// All of a key but the op's number, which another build of the library may change.
Tuned tuned_by(const yoke_launch *launch, const CudnnKey &key)
{
    return {"YOKE_CUDNN_BENCHMARK_FILE", "cudnn",       static_cast<size_t>(cudnn_version()),
            op_name(launch->op),         key.words + 1, sizeof key.words - sizeof *key.words};
}

}  // namespace

// By the file; in a capture too.
bool CudnnCall::recall(const Graph &graph, const EngineRules &rules)
{
    CudnnWinner winner;
    if (!recall_winner(launch_, tuned_by(launch_, entry_->key), &winner, sizeof winner))
        return false;
    CudnnPlan made;
    if (!remake_plan(graph, rules, winner, made)) return false;
    entry_->plan = std::move(made);
    entry_->is_tried = false;
    return true;
}

// What failed as plans were tried: there is the first of them all the same, unless the device is lost.
yoke_status CudnnCall::pass_by(const CudnnFailure &failure) const
{
    if (why_lost(launch_)) return cudnn_pass_over(launch_, failure);
    cudnn_log(*static_cast<const Device *>(launch_->device), failure);
    return YOKE_OK;
}

// False where memory lacks; what else fails is kept in *lost.
bool CudnnCall::reserve(Scratch &room, uint64_t bytes, yoke_status *lost) const
{
    const yoke_status status = bytes ? room.try_reserve(bytes) : YOKE_OK;
    if (status == YOKE_E_OOM)
        tell_no_room("plans that want it are not measured");
    else
        *lost = status;
    return !status;
}

// Which of the plans is the fastest, or -1. One workspace is held at a time.
int CudnnCall::race(const CudnnPlan *plans, int count, yoke_status *lost)
{
    CudnnWorker::Operand all[kMostOperands];
    const int operand_count = operands(all);
    Scratch beside(launch_);
    if (!reserve(beside, adds_to(), lost)) return -1;
    if (beside.data()) all[0].address = beside.data();
    std::optional<Scratch> room;
    int holder = -1;
    bool has_room = true;
    Stopwatch watch(launch_, kTunedPlan);
    const int fastest = fastest_of(watch, count, [&](int i) {
        if (*lost) return false;
        if (std::exchange(holder, i) != i)
            has_room = reserve(room.emplace(launch_), plans[i].workspace, lost);
        if (!has_room) return false;
        const CudnnFailure failure = worker_.run(plans[i], all, operand_count, room->data());
        if (failure) *lost = pass_by(failure);
        return !failure;
    });
    return watch.works() && !*lost ? fastest : -1;
}

// The quickest of the first plans, if there is one, in the place of the first. A search that fails has cuDNN's first.
yoke_status CudnnCall::measure(const Graph &graph, const EngineRules &rules)
{
    CudnnPlan plans[kMostTuned];
    CudnnFailure why;
    const auto limit = static_cast<int>(std::min<uint32_t>(launch_->benchmark_limit, kMostTuned));
    const int count = find_plans(graph, rules, limit ? limit : kMostTuned, plans, &why);
    yoke_status lost = why && CUDNN_STATUS_CATEGORY(why.status) != CUDNN_STATUS_NOT_SUPPORTED
                           ? pass_by(why)
                           : YOKE_OK;
    const int fastest = lost ? -1 : count > 1 ? race(plans, count, &lost) : count - 1;
    if (fastest < 0) return lost;
    entry_->plan = std::move(plans[fastest]);
    entry_->is_tried = count > 1;
    const Tuned tuned = tuned_by(launch_, entry_->key);
    CudnnWinner winner;
    if (has_winners_file(tuned) && read_winner(*cudnn_calls(), entry_->plan, winner))
        keep_winner(launch_, tuned, &winner, sizeof winner);
    return YOKE_OK;
}

// At a plan's first run in a benchmark.
yoke_status CudnnCall::tune()
{
    const Tuning tuning = tuning_on(launch_, kTunedPlan);
    if (tuning == Tuning::kLater) return YOKE_OK;
    entry_->untuned = false;
    if (tuning == Tuning::kOff) return YOKE_OK;
    const Relaxed relaxed;
    const EngineRules rules = this->rules(launch_->workspace_limit);
    Graph graph(*cudnn_calls(), worker_.target());
    build(graph);
    if (recall(graph, rules) || !may_try(launch_)) return YOKE_OK;
    return measure(graph, rules);
}

}  // namespace yoke::cuda
