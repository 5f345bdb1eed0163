#include "kernels/cuda/host/cudnn/call.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "core/backend/ops.inc"
#include "kernels/cuda/host/cudnn/status.h"
#include "kernels/cuda/host/cudnn/winner.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"
#include "kernels/cuda/host/tune.h"

namespace yoke::cuda {

namespace {

constexpr const char *kTunedPlan = "a plan of cuDNN's";
constexpr int kMostShapes = 64;  // limit for an op, in a process

// Returns whether another shape of an op may be tried. The first refused shape is logged.
bool may_try(const yoke_launch *launch)
{
    static std::atomic<int> tried[YOKE_OP_COUNT];
    const int before = tried[launch->op].fetch_add(1, std::memory_order_relaxed);
    if (before == kMostShapes) {
        char line[160];
        snprintf(
            line, sizeof line,
            "%s: cuDNN's plans for %d shapes were measured; further shapes use cuDNN's first plan",
            op_name(launch->op), kMostShapes);
        g_host->log(YOKE_LOG_WARN, line);
    }
    return before < kMostShapes;
}

// Returns the tuned case of a key. Takes the op's name in place of its number, which another build of the library may
// change.
Tuned tuned_by(const yoke_launch *launch, const CudnnKey &key)
{
    return {"YOKE_CUDNN_BENCHMARK_FILE", "cudnn",       static_cast<size_t>(cudnn_version()),
            op_name(launch->op),         key.words + 1, sizeof key.words - sizeof *key.words};
}

int device_index(const yoke_launch *launch)
{
    return static_cast<const Device *>(launch->device)->index;
}

}  // namespace

View::View(const yoke_operand &like, const void *data, const int64_t *wanted) : operand(like)
{
    std::copy(wanted, wanted + like.ndim, strides);
    operand.data = const_cast<void *>(data);
    operand.strides = strides;
    operand.flags &= ~YOKE_OPERAND_CONTIGUOUS;
}

bool CudnnCall::is_benchmark() const
{
    return launch_->flags & YOKE_LAUNCH_CUDNN_BENCHMARK &&
           !(launch_->flags & YOKE_LAUNCH_DETERMINISTIC);
}

yoke_status cudnn_prepare(Device &device, uint32_t flags)
{
    if (flags & YOKE_LAUNCH_CUDNN_OFF || !cudnn_calls()) return YOKE_OK;
    yoke_launch launch{};
    launch.op = YOKE_OP__CONV;
    launch.device = &device;
    return CudnnLoan(&launch).status();
}

// ---- plans ----------------------------------------------------------------------------------------------------------

yoke_status CudnnCall::prepare(bool *exists)
{
    constexpr size_t kLast = std::size(CudnnKey{}.words) - 1;
    const uint64_t limit = launch_->workspace_limit;
    const EngineRules rules = this->rules(limit);
    CudnnKey key = this->key();
    key.words[kLast] = static_cast<int64_t>(limit);
    key.words[kLast - 1] = rules.tf32 | rules.deterministic << 1 | is_benchmark() << 2;
    entry_ = worker_.find(key);
    yoke_status status = YOKE_OK;
    if (!entry_) {
        entry_ = &worker_.room_for(key);
        status = make_first(limit);
    }
    *exists = entry_->exists;
    return status;
}

// Makes the plan of a new key: in a benchmark, the stored winner, else cuDNN's first plan. The thread is relaxed,
// because another library's capture may forbid compilation and loading of code.
yoke_status CudnnCall::make_first(uint64_t limit)
{
    const Relaxed relaxed;
    const EngineRules rules = this->rules(limit);
    Graph graph(*cudnn_calls(), worker_.target());
    build(graph);
    if (is_benchmark() && recall(graph, rules)) {
        entry_->exists = true;
        return YOKE_OK;
    }
    const yoke_status status =
        find_plan(graph, rules, entry_->plan, &entry_->exists, &entry_->refused);
    entry_->untuned = entry_->exists;
    return status;
}

// Finds the first plan. `refused` is null if the caller has a plan already.
yoke_status CudnnCall::find_plan(const Graph &graph, const EngineRules &rules, CudnnPlan &plan,
                                 bool *exists, uint64_t *refused)
{
    CudnnFailure why;
    *exists = find_plans(graph, rules, 1, &plan, &why, refused) > 0;
    // If an engine does not support the graph, this is normal: other engines exist.
    const bool is_usual = CUDNN_STATUS_CATEGORY(why.status) == CUDNN_STATUS_NOT_SUPPORTED;
    if (why && !is_usual) return cudnn_pass_over(launch_, why, *exists);
    if (!*exists && refused) tell_none(why, *refused);
    return YOKE_OK;
}

yoke_status CudnnCall::find_smaller(uint64_t limit, CudnnPlan &plan, bool *exists)
{
    const Relaxed relaxed;
    Graph graph(*cudnn_calls(), worker_.target());
    build(graph);
    return find_plan(graph, rules(limit), plan, exists, nullptr);
}

void CudnnCall::tell_none(const CudnnFailure &why, uint64_t) const
{
    Text text;
    char line[1024];
    describe(text);
    snprintf(
        line, sizeof line,
        "cuda:%d: cuDNN has no engine for %s with these settings%s%s; Yoke's own kernels are used",
        device_index(launch_), text, *why.said ? ": " : "", why.said);
    cudnn_warn(CudnnReason::kNoEngine, line);
}

void CudnnCall::tell_room(uint64_t wanted, uint64_t less) const
{
    Text text;
    char line[320];
    describe(text);
    snprintf(
        line, sizeof line,
        "cuda:%d: there is no memory for a workspace of %llu bytes for %s; the next plan needs %llu bytes",
        device_index(launch_), static_cast<unsigned long long>(wanted), text,
        static_cast<unsigned long long>(less));
    cudnn_warn(CudnnReason::kLessRoom, line);
}

void CudnnCall::tell_no_room(const char *instead) const
{
    Text text;
    char line[320];
    describe(text);
    snprintf(line, sizeof line, "cuda:%d: there is no memory for a workspace for %s; %s",
             device_index(launch_), text, instead);
    cudnn_warn(CudnnReason::kNoRoom, line);
}

// ---- runs -----------------------------------------------------------------------------------------------------------

yoke_status CudnnCall::run(bool *has_room)
{
    bool exists = false;
    *has_room = true;
    if (const yoke_status lost = prepare(&exists)) return lost;
    if (!exists)
        return fail(YOKE_E_OOM, 0, "%s: cuDNN created a plan for this call before, but not now",
                    op_name(launch_->op));
    if (is_benchmark() && entry_->untuned)
        if (const yoke_status lost = tune()) return lost;
    CudnnPlan spare;
    const CudnnPlan *plan = &entry_->plan;
    for (;;) {
        Scratch scratch(launch_);
        const yoke_status status = plan->workspace ? scratch.try_reserve(plan->workspace) : YOKE_OK;
        if (!status) return execute(*plan, scratch.data());
        if (status != YOKE_E_OOM) return status;
        const uint64_t wanted = plan->workspace;
        if (const yoke_status lost = find_smaller(wanted - 1, spare, &exists)) return lost;
        *has_room = exists;
        if (!exists) return status;
        tell_room(wanted, spare.workspace);
        plan = &spare;
    }
}

yoke_status CudnnCall::execute(const CudnnPlan &plan, void *workspace)
{
    const Relaxed relaxed(!entry_->is_tried);  // the first run loads code
    CudnnWorker::Operand all[kMostOperands];
    const int count = operands(all);
    const CudnnFailure failure = worker_.run(plan, all, count, workspace);
    entry_->is_tried = true;
    if (!failure) [[likely]]
        return YOKE_OK;
    Text text;
    describe(text);
    return cudnn_check(launch_, failure, "%s", text);
}

// ---- plans that are tried, where the launch asks for a benchmark ----------------------------------------------------

// Takes the plan from the file of winners, in a capture too. Returns false if the file has no winner for the key, or
// the winner makes no plan.
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

// Logs a failure during trials of plans and returns YOKE_OK, because the first plan still exists. If the device is
// lost, returns the loss.
yoke_status CudnnCall::pass_by(const CudnnFailure &failure) const
{
    if (why_lost(launch_)) return cudnn_pass_over(launch_, failure);
    cudnn_log(*static_cast<const Device *>(launch_->device), failure);
    return YOKE_OK;
}

// Reserves memory for trials. Returns false on failure: a missing memory is logged, other failures go to *lost.
bool CudnnCall::reserve(Scratch &room, uint64_t bytes, yoke_status *lost) const
{
    const yoke_status status = bytes ? room.try_reserve(bytes) : YOKE_OK;
    if (status == YOKE_E_OOM)
        tell_no_room("plans that need this memory are not measured");
    else
        *lost = status;
    return !status;
}

// Times the plans. Returns the fastest plan's number, or -1 if no time is known or the device is lost (*lost). Holds
// only a single workspace at a time.
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

// Times cuDNN's first plans and takes the quickest. Stores this winner, if the user named a file. If the search
// fails, cuDNN's first plan stays. Returns the loss of the device, else YOKE_OK.
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

// Tunes the plan at its first run in a benchmark, by the stored winner or by trial. During a capture does nothing, so
// the next run tunes the plan.
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
