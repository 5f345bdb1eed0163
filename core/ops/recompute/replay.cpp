#include "core/ops/recompute/replay.h"

#include "core/base/error.h"
#include "core/ops/graph.h"
#include "core/ops/launch.h"
#include "core/ops/launch_copy.h"
#include "core/ops/recompute/needs.h"
#include "core/ops/recompute/offload_queue.h"
#include "core/ops/recompute/scope.h"
#include "core/ops/short_list.h"

#include <algorithm>
#include <chrono>

namespace yoke {

namespace {

// Guard that gives CPU kernels the number of threads of the first run: their results may depend on the number.
class SameThreads {
public:
    SameThreads() : before_(thread_state().threads) {}
    ~SameThreads() { thread_state().threads = before_; }
    SameThreads(const SameThreads &) = delete;
    SameThreads &operator=(const SameThreads &) = delete;
    static void set(int32_t threads) { thread_state().threads = threads; }

private:
    const int32_t before_;
};

// Raises if the memory has changed. `memory` is a Storage, or the Origin that outlives a storage.
template <class Memory>
void check_unchanged(const Memory &memory, const char *writer, uint32_t version,
                     const LoggedCall &call, size_t operand, const char *reader)
{
    const uint32_t now = memory.version.load(std::memory_order_relaxed);
    if (now == version) return;
    fail(
        YOKE_E_STATE,
        "backward of %s needs a tensor that a checkpoint scope dropped; to recompute it, %s must read operand %zu as it was, but %s has changed the operand in place since (version %u, read at %u); change a clone() instead",
        reader, public_name(call.named), operand, writer ? writer : "the host", now, version);
}

// Returns whether the call was logged outside the thread's capture, so that its draws have fixed places. Raises STATE
// for draws of another capture: their base is known only in the graph itself.
bool is_placed(const LoggedCall &call, const char *reader)
{
    const bool is_elsewhere = call.graph != Graph::number_of_thread();
    if (is_elsewhere && call.graph && offset_param(kOps[call.launch().op]) >= 0)
        fail(
            YOKE_E_STATE,
            "backward of %s needs a tensor that a checkpoint scope dropped; to recompute it, %s must draw the random numbers of the last replay of its graph; run backward in that capture, too",
            reader, public_name(call.named));
    return is_elsewhere;
}

}  // namespace

// Pass over the calls of a recording.
class Replays::Run {
public:
    Run(Replays &replays, Recording &recording, const Item &wanted, const char *reader)
        : replays_(replays), recording_(recording), reader_(reader), needs_(recording, &wanted)
    {
    }
    void run()
    {
        const SameThreads as_before;
        for (LoggedCall *call : needs_.calls) launch(*call);
    }
    Ref<Storage> made(const Value &value) { return made_[&value]; }

private:
    void launch(LoggedCall &call);
    Storage *read(const LoggedCall &call, size_t operand);
    Storage *make(const LoggedCall &call, const Value &value);
    void let_go(const LoggedCall &call);

    Replays &replays_;
    Recording &recording_;
    const char *const reader_;
    Needs needs_;
    std::unordered_map<const Value *, Ref<Storage>> made_;
    std::unordered_map<const Value *, Slot> requested_;
    std::unordered_map<const Offloaded *, Ref<Storage>> returned_;
};

Storage *Replays::Run::make(const LoggedCall &call, const Value &value)
{
    Ref<Storage> &made = made_[&value];
    made = Storage::allocate(call.device, value.bytes);
    return made.get();
}

// Returns the memory of an operand for the repeated call; makes or recomputes the memory if needed. Raises STATE if
// memory to read has changed since.
Storage *Replays::Run::read(const LoggedCall &call, size_t operand)
{
    const Source &source = call.sources()[operand];
    if (source.outside.present()) {
        const Storage &outside = *source.outside;
        check_unchanged(outside, outside.last_writer(), source.version, call, operand, reader_);
        return source.outside.get();
    }
    if (source.offloaded.present()) {
        check_unchanged(*source.origin, source.origin->last_writer.load(), source.version, call,
                        operand, reader_);
        return (returned_[source.offloaded.get()] = replays_.storage_of(source.offloaded)).get();
    }
    const Value &value = *source.value;
    if (value.maker == call.position) return make(call, value);
    if (const auto place = made_.find(&value); place != made_.end()) return place->second.get();
    if (Item *item = recording_.find_item(value); item && item->is_kept()) {
        if (Storage *held = item->held.get()) {  // possibly a copy of the former value
            check_unchanged(*held, held->last_writer(), value.known_version, call, operand,
                            reader_);
            return held;
        }
        check_unchanged(value, value.last_writer.load(), value.known_version, call, operand,
                        reader_);
        return (returned_[item->offloaded.get()] = replays_.storage_of(item->offloaded)).get();
    }
    const Slot slot = recording_.request(value);
    return (made_[&value] = replays_.take(slot, reader_)).get();
}

void Replays::Run::launch(LoggedCall &call)
{
    const yoke_launch &recorded = call.launch();
    const auto sources = call.sources();
    ShortList<yoke_operand, 8> operands(sources.size());
    ShortList<Storage *, 8> storages(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) {
        yoke_operand &o = operands[i] = recorded.operands[i];
        storages[i] = nullptr;
        if (sources[i].value.present() || sources[i].outside.present() ||
            sources[i].offloaded.present()) {
            storages[i] = read(call, i);
            char *first = static_cast<char *>(storages[i]->data);
            o.data = first + reinterpret_cast<intptr_t>(o.data);
            o.begin = first + reinterpret_cast<intptr_t>(o.begin);
        } else {
            o.data = o.flags & YOKE_OPERAND_SCALAR ? static_cast<void *>(&o.immediate) : &o;
        }
    }
    if (recorded.op >= 0) {
        yoke_launch again = recorded;
        again.operands = operands.data();
        again.stream = nullptr;
        again.random_base = nullptr;
        SameThreads::set(call.threads);
        issue(kOps[again.op], again, call.device, {storages.data(), storages.size()},
              is_placed(call, reader_));
    }
    let_go(call);
}

// Releases values without further readers.
void Replays::Run::let_go(const LoggedCall &call)
{
    for (const Source &source : call.sources()) {
        if (!source.value.present() || source.value->maker == call.position) continue;
        const auto use = needs_.uses.find(source.value.get());
        if (use != needs_.uses.end() && --use->second == 0) made_.erase(source.value.get());
    }
    // Also an unneeded result of a call with other results.
    for (const Source &source : call.sources())
        if (source.value.present() && source.value->maker == call.position &&
            !needs_.uses.contains(source.value.get()))
            made_.erase(source.value.get());
}

Replays::Replays()
    : before_(std::exchange(thread_state().replays, this)),
      aside_before_(std::exchange(thread_state().scope_aside,
                                  quiet_.before() ? quiet_.before() : thread_state().scope_aside))
{
}

Replays::~Replays()
{
    thread_state().replays = before_;
    thread_state().scope_aside = aside_before_;
    if (run_.present()) run_->meter().depart();
}

Replays &Replays::of_thread()
{
    return *thread_state().replays;
}

void Replays::make(Recording &recording, const Item &wanted, const char *reader)
{
    const bool is_open = recording.is_open() || (recording.run() && recording.run()->is_open());
    if (is_open && !Scope::is_at_hand(recording))
        fail(
            YOKE_E_STATE,
            "backward of %s needs a tensor that a checkpoint scope dropped, but the scope is still open in another thread; close the scope first",
            reader);
    begin(recording);
    Run run(*this, recording, wanted, reader);
    const auto start = std::chrono::steady_clock::now();
    run.run();
    if (run_.present())
        run_->meter().note_replay(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    Replay &replay = replays_.at(&recording);
    for (const Item &item : recording.items()) {
        const uint32_t holders = item.holders.load(std::memory_order_relaxed);
        if ((!holders && &item != &wanted) || item.is_kept()) continue;
        Ref<Storage> storage = run.made(*item.value);
        if (storage.present()) replay.made[&item] = {std::move(storage), std::max(holders, 1u)};
    }
}

Ref<Storage> Replays::take(const Slot &slot, const char *reader)
{
    Item &item = slot.item();
    Recording &recording = slot.recording();
    if (BudgetRun *run = recording.run(); run && run != run_.get()) [[unlikely]]
        watch(*run);
    if (item.held.present()) return item.held;
    if (item.offloaded.present()) return take_offloaded(recording, item);
    const auto is_made = [&] {
        const auto replay = replays_.find(&recording);
        return replay != replays_.end() && replay->second.made.contains(&item);
    };
    if (!is_made()) make(recording, item, reader);
    Replay &replay = replays_.at(&recording);
    const auto place = replay.made.find(&item);
    if (place == replay.made.end())
        fail(
            YOKE_E_STATE,
            "backward of %s needs a tensor that a checkpoint scope dropped, but when the scope closed, there was no memory to keep the calls that compute the tensor; run the forward again",
            reader);
    Ref<Storage> storage = place->second.storage;
    if (--place->second.left == 0) replay.made.erase(place);
    end_if_done(recording);
    return storage;
}

// ---- Data in host memory --------------------------------------------------------------------------------------

// Begins with a recording at the walk's first look: offloaded data of this recording, and of the recording before,
// starts to come back.
Replays::Replay &Replays::begin(Recording &recording)
{
    const auto [place, is_new] = replays_.try_emplace(&recording);
    Replay &replay = place->second;
    if (!is_new) return replay;
    replay.recording = Ref<Recording>::share(&recording);
    for (const Item &item : recording.items())
        if (item.offloaded.present())
            replay.offloaded += item.holders.load(std::memory_order_relaxed);
    recording.each_offloaded([&](const Ref<Offloaded> &offloaded) {
        replay.brought.push_back(offloaded);
        bring_back(offloaded);
    });
    if (!recording.offload_entry().present()) return replay;
    Ref<OffloadEntry> earlier = recording.offload_entry()->earlier();
    while (earlier.present() && earlier->offloaded().empty()) earlier = earlier->earlier();
    if (earlier.present())
        for (const Ref<Offloaded> &offloaded : earlier->offloaded()) bring_back(offloaded);
    return replay;
}

void Replays::bring_back(const Ref<Offloaded> &offloaded)
{
    const auto [place, is_new] = returning_.try_emplace(offloaded.get());
    if (is_new) place->second = {offloaded, offloaded->bring_back()};
}

Ref<Storage> Replays::storage_of(const Ref<Offloaded> &offloaded)
{
    bring_back(offloaded);
    Offloaded::Return &back = returning_.at(offloaded.get()).back;
    Offloaded::wait_for(back);
    return back.storage;
}

Ref<Storage> Replays::take_offloaded(Recording &recording, const Item &item)
{
    Replay &replay = begin(recording);
    Ref<Storage> storage = storage_of(item.offloaded);
    if (replay.offloaded) --replay.offloaded;
    end_if_done(recording);
    return storage;
}

// Forgets a recording once the walk has taken all results and offloaded data of the recording.
void Replays::end_if_done(const Recording &recording)
{
    const auto place = replays_.find(&recording);
    if (place == replays_.end() || !place->second.made.empty() || place->second.offloaded) return;
    for (const Ref<Offloaded> &offloaded : place->second.brought) returning_.erase(offloaded.get());
    replays_.erase(place);
}

// ---- For memory budgets ---------------------------------------------------------------------------------------

void Replays::watch(BudgetRun &run)
{
    if (run_.present()) run_->meter().depart();
    run.meter().arrive();
    run_ = Ref<BudgetRun>::share(&run);
    watches = true;
}

void Replays::begin_node(const Node &node)
{
    if (!node.is_leaf()) run_->meter().begin_node();
}

void Replays::end_node(const Node &node)
{
    if (!node.is_leaf()) run_->meter().end_node(node.sequence);
}

}  // namespace yoke
