// recompute_log.cpp: what a checkpoint scope takes down while it is open.
#include "core/autograd/node.h"
#include "core/ops/launch.h"
#include "core/ops/ops.h"
#include "core/ops/recompute/budget_run.h"
#include "core/ops/recompute/recompute.h"
#include "core/ops/recompute/remake.h"

#include <algorithm>
#include <cstdint>

namespace yoke {

// ---- Logging --------------------------------------------------------------------------------------------------

// The log's value that is in the storage now; null for what is, or was changed, from outside.
Value *Scope::value_of(Storage &storage) const
{
    auto *value = static_cast<Value *>(storage.origin());
    if (!value || value->log != log_->number) {
        if (log_->imports.empty()) return nullptr;
        const auto place = log_->imports.find(&storage);
        if (place == log_->imports.end()) return nullptr;
        value = place->second.value.get();
    }
    const bool is_known = !value->lost && !value->exposed.load(std::memory_order_relaxed) &&
                          value->known_version == storage.version.load(std::memory_order_relaxed);
    return is_known ? value : nullptr;
}

bool Scope::has_made(const Storage &storage) const
{
    const Value *value = value_of(const_cast<Storage &>(storage));
    return value && value->maker >= begin_;
}

// A value of an outer scope, or one that was imported, is not written by what is logged here; nor one that somebody
// will ask for as it is now: a replay has what it is at the end.
Value *Scope::writable(Storage &storage) const
{
    Value *value = value_of(storage);
    if (!value || value->maker < begin_ || storage.origin() != value) return nullptr;
    const Item *item = find_item(*value);
    return item && item->holders.load(std::memory_order_relaxed) ? nullptr : value;
}

bool Scope::prepare_write(std::span<Storage *const> written)
{
    const bool is_ours =
        std::ranges::all_of(written, [&](Storage *x) { return !x || !x->bytes || writable(*x); });
    for (Storage *x : written) {
        if (!x || !x->bytes) continue;
        if (!is_ours) {
            give_copy_to_readers(*x);
            lose(*x);
        } else if (Item *item = find_item(*writable(*x))) {
            item->let_go();  // it was held as it was
        }
    }
    return is_ours;
}

void Scope::lose(Storage &storage)
{
    Value *value = value_of(storage);
    if (!value) return;
    value->lost = true;
    for (const Scope *scope = this; scope; scope = scope->outer())
        if (Item *item = scope->find_item(*value)) item->let_go();
}

static Ref<Storage> copy_of(Storage &storage)
{
    const NoLog quiet;
    const NoGrad no_grad;
    const NoAutocast as_given;
    const auto bytes = static_cast<int64_t>(storage.bytes);
    const Tensor all = make_layout(*storage.device, YOKE_U8, {&bytes, 1}, nullptr, "checkpoint");
    all->storage = Ref<Storage>::share(&storage);
    all->data = static_cast<char *>(storage.data);
    return ops::clone(*all)->storage;
}

// Calls that read it from outside go on reading what they read.
void Scope::give_copy_to_readers(Storage &storage)
{
    Ref<Storage> copy;
    give_copy(log_->calls, storage, copy);
    if (run_.present()) run_->keep_for_earlier(storage);
}

void Scope::give_copy(std::span<const Ref<LoggedCall>> readers, Storage &storage,
                      Ref<Storage> &copy)
{
    const uint32_t version = storage.version.load(std::memory_order_relaxed);
    for (const Ref<LoggedCall> &call : readers)
        for (Source &source : call->sources()) {
            if (source.outside.get() != &storage || source.version != version) continue;
            if (!copy.present()) copy = copy_of(storage);
            source.outside = copy;
            source.version = copy->version.load(std::memory_order_relaxed);
        }
}

// Of a closed one; what it holds for its own calls is as if it came from outside.
void Scope::give_copy(Storage &storage, Ref<Storage> &copy)
{
    give_copy(calls_, storage, copy);
    for (Item &item : items_) {
        if (!item.is_source || item.held.get() != &storage) continue;
        const uint32_t version = item.value->known_version;
        if (storage.version.load(std::memory_order_relaxed) != version) continue;
        item.held = copy_of(storage);
        item.held->version.store(version, std::memory_order_relaxed);
    }
}

// For each operand from memory: whence it comes.
void Scope::take_sources(LoggedCall &call, std::span<Storage *const> storages, size_t fresh) const
{
    const auto sources = call.sources();
    for (size_t i = 0; i < storages.size(); ++i) {
        Storage *storage = storages[i];
        if (!storage || !storage->bytes || !call.launch().operands[i].numel) continue;
        if (i >= fresh) {
            sources[i].value =
                Ref<Value>::adopt(new Value(log_->number, call.position, storage->bytes));
        } else if (Value *value = value_of(*storage)) {
            sources[i].value = Ref<Value>::share(value);
        } else {
            sources[i].outside = Ref<Storage>::share(storage);
            sources[i].version = storage->version.load(std::memory_order_relaxed);
        }
    }
}

Scope::Entry Scope::prepare(const yoke_launch &launch, Device &device, const OpDef &named,
                            std::span<Storage *const> storages, size_t fresh)
{
    const auto position = static_cast<uint32_t>(log_->calls.size());
    Entry entry;
    entry.storages = storages;
    entry.fresh = fresh;
    entry.call = LoggedCall::make(launch, device, position, named, storages);
    take_sources(*entry.call, storages, fresh);
    if (log_->calls.capacity() - log_->calls.size() < 2)
        log_->calls.reserve(2 * log_->calls.size() + 16);
    entry.is_held = fresh < storages.size() && policy_->holds(*entry.call);
    if (!entry.is_held) return entry;
    for (size_t i = fresh; i < storages.size(); ++i)
        if (Value *value = entry.call->sources()[i].value.get()) item_of(*value);
    Remake remake;
    if (!policy_->holds_all() && find_remake(launch, device, remake))
        prepare_remake(entry, launch, device, remake);
    return entry;
}

// As two calls: the whole one, of which the policy holds a result, and the cheap one that makes another from that.
void Scope::prepare_remake(Entry &entry, const yoke_launch &whole, Device &device,
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

void Scope::commit(Entry entry) noexcept
{
    const auto sources = entry.call->sources();
    for (size_t i = 0; i < entry.fresh; ++i) {
        Value *value = sources[i].value.get();
        if (!value || !entry.call->writes(i)) continue;
        // Behind the call, run.cpp steps the storage's version for each operand that is read and written.
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
    log_->calls.push_back(std::move(entry.call));  // for which there is room
    if (entry.cheap.present()) log_->calls.push_back(std::move(entry.cheap));
}

void Scope::log_empty(const yoke_tensor &x)
{
    if (!x.numel) return;
    yoke_operand made{};
    describe_operand(made, &x, YOKE_OPERAND_WRITE);
    yoke_launch nothing{};
    nothing.op = -1;
    nothing.operands = &made;
    nothing.operand_count = 1;
    Storage *storage = x.storage.get();
    const std::span<Storage *const> storages{&storage, 1};
    const Ref<BudgetRun> run =
        run_;  // which may end this segment before the call, and with it this scope
    if (run.present()) run->begin_call(nothing, *x.device, storages, 0);
    Scope &segment = run.present() ? run->segment() : *this;
    segment.commit(segment.prepare(nothing, *x.device, *thread_state().composing, storages, 0));
    if (run.present()) run->end_call(nothing, storages, 0);
}

void Scope::import(const yoke_launch &launch, Device &device, const OpDef &named,
                   std::span<Storage *const> storages)
{
    const auto position = static_cast<uint32_t>(log_->calls.size());
    Ref<LoggedCall> call = LoggedCall::make(launch, device, position, named, storages);
    const size_t last = storages.size() - 1;
    take_sources(*call, storages.first(last), last);
    Storage &made = *storages[last];
    if (run_.present()) run_->note_imported(made);
    auto value = Ref<Value>::adopt(new Value(log_->number, position, made.bytes));
    value->known_version = made.version.load(std::memory_order_relaxed);
    call->sources()[last].value = value;
    log_->imports[&made] = {std::move(value), Ref<Storage>::share(&made)};
    log_->calls.push_back(std::move(call));
}

Item &Scope::item_of(Value &value)
{
    Item *&item = item_by_value_[&value];
    if (!item) {
        item = &items_.emplace_back();
        item->value = Ref<Value>::share(&value);
    }
    return *item;
}

Slot Scope::slot_of(Value &value)
{
    if (value.maker < begin_) return outer_->slot_of(value);
    return {Ref<Scope>::share(this), item_of(value)};
}

Slot Scope::slot_for(const yoke_tensor &x)
{
    Value *value = value_of(*x.storage);
    if (run_.present()) run_->note_saved(*x.storage);
    if (!value) return offloads_ ? foreign_slot(*x.storage) : Slot();
    Slot slot = slot_of(*value);
    if (offloads_ && &slot.scope() == this) offload(slot.item());
    return slot;
}

// Of what an earlier scope has made, and this one would otherwise hold.
Slot Scope::foreign_slot(Storage &storage)
{
    auto *value = static_cast<Value *>(storage.origin());
    if (!value || value->log == log_->number || storage.device->host ||
        value->exposed.load(std::memory_order_relaxed))
        return {};
    Item &item = item_of(*value);
    if (!item.is_kept()) item.held = Ref<Storage>::share(&storage);
    item.is_foreign = true;
    return {Ref<Scope>::share(this), item};
}

}  // namespace yoke
