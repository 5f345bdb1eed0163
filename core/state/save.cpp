#include "core/state/save.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/ops/ops.h"
#include "core/state/files.h"
#include "core/state/safetensors.h"
#include "core/state/tree_text.h"
#include "core/state/writer.h"

#include <algorithm>
#include <map>

namespace yoke {

namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

Metadata metadata_of(const State *given, const char *call)
{
    Metadata metadata;
    if (!given) return metadata;
    const auto *dict = given->get_if<StateDict>();
    if (!dict)
        fail(YOKE_E_TYPE, "%s: argument 'metadata' is %s; it takes a dict of strings", call,
             kind_text(given->kind()));
    for (const StateDict::Entry &entry : dict->entries()) {
        const std::string shown = shown_name(path_part(entry.key));
        const auto *key = std::get_if<std::string>(&entry.key);
        const auto *value = entry.value->get_if<std::string>();
        if (!key || !value)
            fail(YOKE_E_TYPE,
                 "%s: metadata['%s'] is %s; keys and values are strings, as the format has it",
                 call, shown.c_str(), kind_text(entry.value->kind()));
        if (!is_utf8(*value))
            fail(YOKE_E_VALUE, "%s: metadata['%s'] is no UTF-8", call, shown.c_str());
        if (key->starts_with(kOwnKeys))
            fail(YOKE_E_VALUE,
                 "%s: metadata has the key '%s'; those that begin with 'yoke.' are the library's",
                 call, shown.c_str());
        metadata.emplace_back(*key, *value);
    }
    return metadata;
}

// What the file says of itself beside the user's metadata.
void add_own_metadata(Metadata &metadata, const TreeText &tree)
{
    const auto has = [&](std::string_view key) {
        return std::ranges::any_of(metadata, [&](const auto &pair) { return pair.first == key; });
    };
    if (tree.is_flat) {
        if (!has("format")) metadata.emplace_back("format", "pt");  // which transformers asks for
        return;
    }
    metadata.emplace_back(kFormatKey, std::to_string(kTreeFormat));
    metadata.emplace_back(kTreeKey, tree.json);
}

TensorToStore to_store(const std::string &name, const yoke_tensor &x)
{
    return {name, x.dtype, {x.shape().begin(), x.shape().end()}, x.nbytes(), 0};
}

}  // namespace

void for_each_chunk(const yoke_tensor &x, const std::function<void(const void *, uint64_t)> &take,
                    const char *call)
{
    if (x.numel == 0) return;
    if (x.device->host && x.contiguous) return take(x.data, x.nbytes());
    if (x.nbytes() <= kMostChunk) {
        const Tensor dense = ops::contiguous(x);
        if (dense->device->host) return take(dense->data, dense->nbytes());
        std::string bytes(dense->nbytes(), '\0');
        copy_to_host(*dense, bytes.data(), bytes.size(), call);
        return take(bytes.data(), bytes.size());
    }
    const uint64_t row = x.nbytes() / static_cast<uint64_t>(x.shape_[0]);
    const auto rows = static_cast<int64_t>(std::max<uint64_t>(1, kMostChunk / row));
    for (int64_t first = 0; first < x.shape_[0]; first += rows) {
        Dims shape{x.shape()};
        shape[0] = std::min(rows, x.shape_[0] - first);
        IntList sizes = shape, strides = x.strides();
        if (row > kMostChunk) sizes = sizes.subspan(1), strides = strides.subspan(1);
        for_each_chunk(*make_view(x, sizes, strides.data(), first * x.strides_[0]), take, call);
    }
}

StateToSave StateToSave::of(const State &root, const SaveOptions &options, const char *call)
{
    check_not_capturing(call);
    Metadata metadata = metadata_of(options.metadata, call);
    const TreeText tree = tree_text(root, call);
    add_own_metadata(metadata, tree);
    std::vector<TensorToStore> stored;
    std::map<std::string_view, const Tensor *> found;
    for (const auto &[name, tensor] : tree.tensors) {
        stored.push_back(to_store(name, *tensor));
        found[name] = &tensor;
    }
    StateToSave made;
    made.header = make_stored_header(stored, metadata);
    if (made.header.size() - sizeof(uint64_t) > StoredTensors::kMostHeader)
        fail(
            YOKE_E_VALUE,
            "%s: the header would have %zu bytes, of at most %llu; keep long lists of numbers in tensors",
            call, made.header.size(), static_cast<unsigned long long>(StoredTensors::kMostHeader));
    made.bytes = made.header.size();
    for (const TensorToStore &each : stored) {
        made.tensors.push_back(*found[each.name]);
        made.bytes += each.bytes;
    }
    return made;
}

namespace {

Ref<Work> write_now(SaveTarget &target, const StateToSave &state, const char *call)
{
    const NoGrad no_grad;
    Ref<Work> work = Work::begin(state.bytes);
    const auto write = [&](const void *from, uint64_t bytes) {
        target.write(from, bytes);
        work->advance(bytes);
    };
    write(state.header.data(), state.header.size());
    for (const Tensor &each : state.tensors) for_each_chunk(*each, write, call);
    target.commit();
    work->finish(nullptr);
    return work;
}

// Null where there is no room.
Ref<Snapshot> take_snapshot(const StateToSave &state, const char *call)
{
    const NoGrad no_grad;
    try {
        std::vector<Tensor> tensors = state.tensors;
        for (Tensor &each : tensors)
            if (!each->contiguous) each = ops::contiguous(*each);
        return Snapshot::take(std::move(tensors), call);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_OOM) throw;
        log(LogLevel::kWarn, "%s: %s; the call returns when all is written", call, error.what());
        return nullptr;
    }
}

}  // namespace

Ref<Work> save_to(std::unique_ptr<SaveTarget> target, StateToSave state, bool is_blocking,
                  const char *call)
{
    wait_for_save(call);
    if (!is_blocking)
        if (Ref<Snapshot> snapshot = take_snapshot(state, call); snapshot.present())
            return write_beside(std::move(target), std::move(state.header), std::move(snapshot),
                                state.bytes, call);
    return write_now(*target, state, call);
}

namespace {

class FileTarget final : public SaveTarget {
public:
    FileTarget(const char *call, const std::string &path) : file_(call, path) {}
    void write(const void *from, uint64_t bytes) override { file_.write(from, bytes); }
    void commit() override { file_.commit(); }

private:
    NewFile file_;
};

}  // namespace

Ref<Work> save_state(const std::string &path, const State &root, const SaveOptions &options,
                     const char *call)
{
    StateToSave state = StateToSave::of(root, options, call);
    wait_for_save(call);  // before anything of this one is on the disk
    return save_to(std::make_unique<FileTarget>(call, path), std::move(state), options.is_blocking,
                   call);
}

}  // namespace yoke
