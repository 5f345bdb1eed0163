#include "core/state/save.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/ops/ops.h"
#include "core/state/file_set.h"
#include "core/state/lacks.h"
#include "core/state/safetensors.h"
#include "core/state/set_index.h"
#include "core/state/set_names.h"
#include "core/state/tree_text.h"
#include "core/state/writer.h"

#include <algorithm>
#include <span>

namespace yoke {

namespace {

StoredMetadata metadata_of(const State *given, const char *call)
{
    StoredMetadata metadata;
    if (!given) return metadata;
    const auto *dict = given->get_if<StateDict>();
    if (!dict)
        fail(YOKE_E_TYPE, "%s: argument 'metadata' is %s; it must be a dict of strings", call,
             kind_text(given->kind()));
    for (const StateDict::Entry &entry : dict->entries()) {
        const std::string shown = shown_name(path_part(entry.key));
        const auto *key = std::get_if<std::string>(&entry.key);
        const auto *value = entry.value->get_if<std::string>();
        if (!key || !value)
            fail(YOKE_E_TYPE,
                 "%s: metadata['%s'] is %s; the format needs strings as keys and values", call,
                 shown.c_str(), kind_text(entry.value->kind()));
        if (!is_utf8(*value))
            fail(YOKE_E_VALUE, "%s: metadata['%s'] is not UTF-8", call, shown.c_str());
        if (key->starts_with(kOwnKeys))
            fail(
                YOKE_E_VALUE,
                "%s: metadata has the key '%s'; keys that begin with 'yoke.' belong to the library",
                call, shown.c_str());
        metadata.emplace_back(*key, *value);
    }
    return metadata;
}

// Adds Yoke's own metadata to the user's metadata: the tree with its format. For a plain dict of tensors, adds only a
// "format", if the user gave none.
void add_own_metadata(StoredMetadata &metadata, const TreeText &tree)
{
    const auto has = [&](std::string_view key) {
        return std::ranges::any_of(metadata, [&](const auto &pair) { return pair.first == key; });
    };
    if (tree.is_flat) {
        if (!has("format")) metadata.emplace_back("format", "pt");  // needed by transformers
        return;
    }
    metadata.emplace_back(kFormatKey, std::to_string(kTreeFormat));
    metadata.emplace_back(kTreeKey, tree.json);
}

// Tensors of a file.
using Shard = std::span<const NamedTensor>;

// Splits the tensors into files of at most `most` bytes; 0 means a single file. The order of the tree stays, so
// related tensors are in the same file. A tensor larger than `most` has a file of its own.
std::vector<Shard> shards_of(const TreeText &tree, uint64_t most)
{
    const Shard all(tree.tensors);
    if (most == 0) return {all};
    std::vector<Shard> shards;
    size_t first = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        const uint64_t more = all[i].second->nbytes();
        if (i > first && more > most - std::min(most, bytes)) {
            shards.push_back(all.subspan(first, i - first));
            first = i, bytes = 0;
        }
        bytes += more;
    }
    shards.push_back(all.subspan(first));
    return shards;
}

void add_file(StateToSave &state, Shard tensors, const StoredMetadata &metadata, const char *call)
{
    std::vector<const NamedTensor *> order;
    for (const NamedTensor &each : tensors) order.push_back(&each);
    StateToSave::File &file = state.files.emplace_back();
    file.header = make_stored_header(order, metadata);
    if (file.header.size() - sizeof(uint64_t) > kMostHeader)
        fail(
            YOKE_E_VALUE,
            "%s: the header would have %zu bytes; it must have at most %llu, so keep long lists of numbers in tensors",
            call, file.header.size(), static_cast<unsigned long long>(kMostHeader));
    state.bytes += file.header.size();
    for (const NamedTensor *each : order) {
        state.tensors.push_back(each->second);
        state.bytes += each->second->nbytes();
        file.names.push_back(each->first);
    }
}

}  // namespace

StateToSave StateToSave::of(const State &root, const SaveOptions &options, const char *call)
{
    check_not_capturing(call);
    const TreeText tree = tree_text(root, call);
    const std::vector<Shard> shards = shards_of(tree, options.max_shard);
    StateToSave made;
    made.metadata = metadata_of(options.metadata, call);
    add_own_metadata(made.metadata, tree);
    StoredMetadata of_each;  // the set's own metadata goes into its index
    if (tree.is_flat) add_own_metadata(of_each, tree);
    for (const Shard &shard : shards)
        add_file(made, shard, shards.size() > 1 ? of_each : made.metadata, call);
    return made;
}

uint64_t read_max_shard(std::string_view text, const char *call)
{
    const std::optional<Measure> read = read_measure(text);
    const bool is_known = read && (read->known || read->unit.empty());
    const double bytes = is_known ? read->number * (read->known ? read->known->scale : 1) : 0;
    if (!(bytes >= 1 && bytes < 9e18))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'max_shard' is '%s'; it must be a number of bytes of at least 1, such as 500000000 or 5GiB",
            call, shown_name(text).c_str());
    return static_cast<uint64_t>(bytes);
}

namespace {

class FileTarget final : public SaveTarget {
public:
    FileTarget(const char *call, const std::string &path) : file_(call, path) {}
    void write(const void *from, uint64_t bytes) override { file_.write(from, bytes); }
    void commit() override
    {
        file_.commit();
        remove_former_set(file_.folder(), file_.name());
    }

private:
    NewFile file_;
};

class SetTarget final : public SaveTarget {
public:
    SetTarget(const char *call, const std::string &path, const StateToSave &state)
        : set_(call, path)
    {
        std::vector<FileOfSet> files;
        uint64_t bytes = 0;
        for (const Tensor &each : state.tensors) bytes += each->nbytes();
        for (size_t i = 0; i < state.files.size(); ++i)
            files.push_back({set_.name_of(i, state.files.size()), state.files[i].names});
        index_ = make_set_index(files, state.metadata, bytes);
        if (index_.size() > SetIndex::kMostBytes)
            fail(
                YOKE_E_VALUE,
                "%s: the index of the set would have %zu bytes; it must have at most %llu, so keep long lists of numbers in tensors",
                call, index_.size(), static_cast<unsigned long long>(SetIndex::kMostBytes));
        for (FileOfSet &file : files) names_.push_back(std::move(file.name));
    }
    void begin_file(size_t i) override { set_.begin(names_[i]); }
    void write(const void *from, uint64_t bytes) override { set_.write(from, bytes); }
    void commit() override { set_.commit(index_); }

private:
    NewSet set_;
    std::vector<std::string> names_;
    std::string index_;
};

void check_path(const std::string &path, const char *call)
{
    if (is_index_name(path))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'path' is '%s', the name of a set's index, which save makes itself; give the name of the file, '%s'",
            call, path.c_str(), std::string(file_of_index(path)).c_str());
}

}  // namespace

Ref<Work> save_state(const std::string &path, const State &root, const SaveOptions &options,
                     const char *call)
{
    check_path(path, call);
    StateToSave state = StateToSave::of(root, options, call);
    wait_for_save(call, options.is_blocking);  // before any file of this save is on the disk
    std::unique_ptr<SaveTarget> target;
    if (state.files.size() > 1)
        target = std::make_unique<SetTarget>(call, path, state);
    else
        target = std::make_unique<FileTarget>(call, path);
    return save_to(std::move(target), std::move(state), options.is_blocking, call);
}

}  // namespace yoke
