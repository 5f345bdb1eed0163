#include "core/ops/recompute/recording.h"

#include "core/base/error.h"
#include "core/ops/recompute/budget_run.h"
#include "core/ops/recompute/call_log.h"
#include "core/ops/recompute/needs.h"
#include "core/ops/recompute/offload_queue.h"
#include "core/ops/recompute/remake.h"

#include <algorithm>
#include <exception>

namespace yoke {

// ---- Items and slots ------------------------------------------------------------------------------------------

void Item::offload()
{
    if (!held.present() || value->exposed.load(std::memory_order_relaxed)) return;
    if (Ref<Offloaded> moved = Offloaded::make(*held); moved.present()) {
        offloaded = std::move(moved);
        held = nullptr;
    }
}

Slot::Slot(Ref<Recording> recording, Item &item) : recording_(std::move(recording)), item_(&item)
{
    item.holders.fetch_add(1, std::memory_order_relaxed);
}

void Slot::let_go() noexcept
{
    Item *item = std::exchange(item_, nullptr);
    // An open recording looks through its items when it closes.
    if (item->holders.fetch_sub(1, std::memory_order_acq_rel) == 1 && !recording_->is_open() &&
        !item->is_source)
        item->let_go();
}

Item *Recording::find_item(const Value &value) const
{
    const auto place = item_by_value_.find(&value);
    return place == item_by_value_.end() ? nullptr : place->second;
}

Item &Recording::item_of(Value &value)
{
    Item *&item = item_by_value_[&value];
    if (!item) {
        item = &items_.emplace_back();
        item->value = Ref<Value>::share(&value);
    }
    return *item;
}

Slot Recording::slot_of(Value &value)
{
    if (value.maker < begin_) return outer_->slot_of(value);
    return {Ref<Recording>::share(this), item_of(value)};
}

Slot Recording::slot_for(const yoke_tensor &x)
{
    Value *value = log_->value_of(*x.storage);
    if (!value) return offloads_ ? foreign_slot(*x.storage) : Slot();
    Slot slot = slot_of(*value);
    if (offloads_ && &slot.recording() == this) slot.item().offload();
    return slot;
}

// Makes a slot for a value of an earlier recording that this recording would otherwise hold.
Slot Recording::foreign_slot(Storage &storage)
{
    auto *value = static_cast<Value *>(storage.origin());
    if (!value || value->log == log_->number || storage.device->host ||
        value->exposed.load(std::memory_order_relaxed))
        return {};
    Item &item = item_of(*value);
    if (!item.is_kept()) item.held = Ref<Storage>::share(&storage);
    item.is_foreign = true;
    return {Ref<Recording>::share(this), item};
}

Slot Recording::request(const Value &value)
{
    if (value.maker < begin_) return outer_->request(value);
    if (is_open()) return slot_of(const_cast<Value &>(value));
    Item *item = find_item(value);
    if (!item)
        fail(YOKE_E_INTERNAL, "checkpoint: a scope was asked for a tensor that it did not keep");
    return {Ref<Recording>::share(this), *item};
}

// ---- While it is open -----------------------------------------------------------------------------------------

Recording::Recording(Ref<Recording> outer, Ref<Policy> policy, bool offloads, Ref<BudgetRun> run)
    : outer_(std::move(outer)),
      run_(std::move(run)),
      log_(outer_.present() ? outer_->log_ : Ref<CallLog>::adopt(new CallLog)),
      begin_(log_->size()),
      policy_(std::move(policy)),
      offloads_(offloads)
{
}

Recording::~Recording()
{
    if (run_.present()) run_->forget(*this);
    if (offload_entry_.present()) offload_entry_->clear();
}

std::span<const Ref<LoggedCall>> Recording::calls() const
{
    if (!is_open()) return calls_;
    return log_->calls().subspan(begin_);
}

bool Recording::has_made(const Storage &storage) const
{
    const Value *value = log_->value_of(const_cast<Storage &>(storage));
    return value && value->maker >= begin_;
}

// Returns the value of a storage if logged calls may write the value. Values of an outer recording and imported
// values are excluded. A value with holders is excluded too: its holders need the present contents, but a replay
// gives the contents at the end.
Value *Recording::writable(Storage &storage) const
{
    Value *value = log_->value_of(storage);
    if (!value || value->maker < begin_ || storage.origin() != value) return nullptr;
    const Item *item = find_item(*value);
    return item && item->holders.load(std::memory_order_relaxed) ? nullptr : value;
}

bool Recording::prepare_write(const yoke_launch &launch, std::span<Storage *const> storages)
{
    // An operand written but not read by a launch is a result: its memory is new, or the memory of a read operand.
    constexpr uint32_t kChanged = YOKE_OPERAND_READ | YOKE_OPERAND_WRITE;
    const auto is_changed = [&](size_t i) {
        return (launch.operands[i].flags & kChanged) == kChanged && storages[i] &&
               storages[i]->bytes;
    };
    bool is_ours = true;
    for (size_t i = 0; i < storages.size() && is_ours; ++i)
        is_ours = !is_changed(i) || writable(*storages[i]);
    for (size_t i = 0; i < storages.size(); ++i) {
        if (!is_changed(i)) continue;
        Storage &storage = *storages[i];
        if (is_ours) {
            // The value was held as it was.
            if (Item *item = find_item(*writable(storage))) item->let_go();
            continue;
        }
        Ref<Storage> copy;
        give_copy_to_readers(log_->calls(), storage, copy);
        if (run_.present()) run_->keep_for_earlier(storage);
        lose(storage);
    }
    return is_ours;
}

void Recording::lose(Storage &storage)
{
    Value *value = log_->value_of(storage);
    if (!value) return;
    value->lost = true;
    for (const Recording *each = this; each; each = each->outer_.get())
        if (Item *item = each->find_item(*value)) item->let_go();
}

Recording::Entry Recording::prepare(const yoke_launch &launch, Device &device, const OpDef &named,
                                    std::span<Storage *const> storages, size_t fresh)
{
    Entry entry;
    entry.storages = storages;
    entry.fresh = fresh;
    entry.call = log_->make_call(launch, device, named, storages, fresh);
    log_->reserve_two();
    entry.is_held = fresh < storages.size() && policy_->holds(*entry.call);
    if (!entry.is_held) return entry;
    for (size_t i = fresh; i < storages.size(); ++i)
        if (Value *value = entry.call->sources()[i].value.get()) item_of(*value);
    Remake remake;
    if (!policy_->holds_all() && find_remake(launch, device, remake))
        prepare_remake(entry, launch, device, remake);
    return entry;
}

// Splits a call in two: the whole call, for which the policy holds a result, and the cheap call that makes the other
// result.
void Recording::prepare_remake(Entry &entry, const yoke_launch &whole, Device &device,
                               const Remake &remake)
{
    yoke_operand operands[2] = {whole.operands[remake.from], whole.operands[remake.to]};
    operands[0].flags ^= YOKE_OPERAND_READ | YOKE_OPERAND_WRITE;
    yoke_launch launch = whole;
    launch.op = remake.op;
    launch.operands = operands;
    launch.params = remake.params;
    launch.operand_count = 2;
    launch.param_count = remake.param_count;
    launch.work = static_cast<double>(operands[0].bytes + operands[1].bytes);
    Storage *const both[] = {entry.storages[remake.from], entry.storages[remake.to]};
    const uint32_t position = entry.call->position + 1;
    entry.cheap = LoggedCall::make(launch, device, position, kOps[remake.op], both);
    const auto sources = entry.cheap->sources();
    sources[0].value = entry.call->sources()[remake.from].value;
    sources[1].value = Ref<Value>::adopt(new Value(log_->number, position, both[1]->bytes));
    entry.elsewhere = remake.to;
}

void Recording::commit(Entry entry) noexcept
{
    const auto sources = entry.call->sources();
    for (size_t i = 0; i < entry.fresh; ++i) {
        Value *value = sources[i].value.get();
        if (!value || !entry.call->writes(i)) continue;
        // After the call, call.cpp increments the storage's version for each operand both read and written.
        value->known_version += entry.call->reads(i);
        value->last_write = entry.call->position;
    }
    for (size_t i = entry.fresh; i < sources.size(); ++i) {
        if (!sources[i].value.present()) continue;
        Storage &storage = *entry.storages[i];
        if (i == entry.elsewhere) {
            storage.set_origin(entry.cheap->sources()[1].value);
            continue;
        }
        storage.set_origin(sources[i].value);
        if (entry.is_held) find_item(*sources[i].value)->held = Ref<Storage>::share(&storage);
    }
    log_->add(std::move(entry.call));
    if (entry.cheap.present()) log_->add(std::move(entry.cheap));
}

// ---- As it closes ---------------------------------------------------------------------------------------------

void Recording::close()
{
    std::exception_ptr failure;
    {
        const NoLog quiet;
        try {
            if (policy_->is_asked()) ask_policy();
        } catch (...) {
            failure = std::current_exception();
        }
        try {
            shrink();
        } catch (...) {
            failure = std::current_exception();
            give_up();
        }
    }
    if (!outer_.present()) log_->clear();
    log_ = {};
    closed_.store(true, std::memory_order_release);
    if (failure) std::rethrow_exception(failure);
}

// Returns whether a call makes a value; a call that only writes in place makes none.
static bool makes_something(LoggedCall &call)
{
    return std::ranges::any_of(call.sources(), [&](const Source &source) {
        return source.value.present() && source.value->maker == call.position;
    });
}

// Asks for the fate of held results, for each call needed if nothing were held. Releases results that go, and marks
// results to offload. If the policy raises, all results go.
void Recording::ask_policy()
{
    std::unordered_map<uint32_t, Policy::Fate> fates;  // by the call
    std::exception_ptr failure;
    try {
        for (LoggedCall *call : Needs(*this, nullptr, true).calls)
            if (makes_something(*call) && has_policy_.load())
                fates[call->position] =
                    policy_->holds(*call) ? policy_->fate(*call) : Policy::Fate::kGo;
    } catch (...) {
        failure = std::current_exception();
        fates.clear();
    }
    for (Item &item : items_) {
        if (item.is_foreign) continue;
        const auto place = fates.find(item.value->maker);
        const auto fate = place == fates.end() ? Policy::Fate::kGo : place->second;
        if (fate == Policy::Fate::kGo) item.let_go();
        item.must_offload |= fate == Policy::Fate::kOffload;
    }
    if (failure) std::rethrow_exception(failure);
}

// Drops calls not needed by any item, with their held memory, and results held by the policy without use.
void Recording::shrink()
{
    const Needs needs(*this, nullptr);
    for (Item *item : needs.sources) item->is_source = true;
    calls_.reserve(needs.calls.size());
    for (LoggedCall *call : needs.calls) {
        calls_.push_back(Ref<LoggedCall>::share(call));
        for (const Source &source : call->sources())
            if (source.value.present() && source.value->maker < begin_ &&
                !requests_.contains(source.value.get()))
                requests_.emplace(source.value.get(), outer_->request(*source.value));
    }
    for (Item &item : items_)
        if (!item.is_source && item.holders.load(std::memory_order_relaxed) == 0) item.let_go();
    offload_all();
}

// Gives up, since memory for closing has run out: dropped values are lost, and a later request raises an error.
void Recording::give_up() noexcept
{
    calls_.clear();
    requests_.clear();
    for (Item &item : items_) item.let_go();
}

// Offloads the values still held, and the memory of earlier recordings read by the calls.
void Recording::offload_all()
{
    std::vector<Ref<Offloaded>> all;
    std::unordered_map<const Storage *, Ref<Offloaded>> outside;
    for (Item &item : items_) {
        const Ref<Storage> held = item.held;
        if (offloads_ || item.must_offload) item.offload();
        if (!item.offloaded.present()) continue;
        all.push_back(item.offloaded);
        if (held.present() && item.is_foreign) outside[held.get()] = item.offloaded;
    }
    for (const Ref<LoggedCall> &call :
         offloads_ ? std::span<const Ref<LoggedCall>>(calls_) : std::span<const Ref<LoggedCall>>())
        for (Source &source : call->sources()) {
            Storage *storage = source.outside.get();
            Origin *origin = storage ? storage->origin() : nullptr;
            if (!origin || origin->exposed.load(std::memory_order_relaxed) ||
                origin->version.load(std::memory_order_relaxed) != source.version)
                continue;
            Ref<Offloaded> &offloaded = outside[storage];
            if (!offloaded.present()) {
                offloaded = Offloaded::make(*storage);
                if (!offloaded.present()) continue;
                all.push_back(offloaded);
            }
            source.offloaded = offloaded;
            source.origin = Ref<Origin>::share(origin);
            source.outside = nullptr;
        }
    if (!all.empty()) offload_entry_ = OffloadQueue::of_process().add(std::move(all));
}

// ---- For a run of a memory budget -----------------------------------------------------------------------------

// Gives copies to readers. Memory held for the recording's own calls is treated like memory from outside.
void Recording::give_copy(Storage &storage, Ref<Storage> &copy)
{
    give_copy_to_readers(calls_, storage, copy);
    for (Item &item : items_) {
        if (!item.is_source || item.held.get() != &storage) continue;
        const uint32_t version = item.value->known_version;
        if (storage.version.load(std::memory_order_relaxed) != version) continue;
        item.held = copy_of(storage);
        item.held->version.store(version, std::memory_order_relaxed);
    }
}

}  // namespace yoke
