#include "core/state/load.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/ops/ops.h"
#include "core/select/select.h"
#include "core/state/read_team.h"
#include "core/state/save.h"
#include "core/state/stored.h"
#include "core/state/tree_text.h"

#include <cerrno>
#include <memory>
#include <system_error>
#include <unordered_map>

namespace yoke {

namespace {

// Loader of tensors from the files of a state.
class TensorLoader {
public:
    TensorLoader(const Stored &from, Device &cpu, const LoadOptions &options, const char *call)
        : from_(from), cpu_(cpu), options_(options), call_(call), maps_(from.files().size())
    {
    }
    // Returns a tensor, cast to the wanted dtype. Its bytes are there when finish() returns. Raises YOKE_E_CHECKPOINT
    // if Yoke does not support its dtype or shape.
    Tensor load(const Stored::Place &place) const;
    void finish() const { team_.finish(); }

private:
    bool is_on_host() const { return !options_.device || options_.device->host; }
    void check(const Stored::Place &place) const;
    Tensor as_stored(const Stored::Place &place) const;
    // Map of a file, once asked for. If the system does not map the file, `map` is null, and `error` gives the
    // reason.
    struct Map {
        bool is_known = false;
        std::shared_ptr<MappedFile> map = {};
        int error = 0;
    };
    const Map &map_of(const Stored::Place &place) const;
    Tensor mapped(const Stored::Place &place, const Map &map, uint64_t offset) const;
    Tensor read_unmapped(const Stored::Place &place, const Map &map, uint64_t offset) const;
    Tensor read(const Stored::Place &place, uint64_t offset) const;
    Tensor on_device(const Stored::Place &place, uint64_t offset) const;
    IntList shape(const Stored::Place &place) const
    {
        return from_.file(place).stored().shape(*place.tensor);
    }

    const Stored &from_;
    Device &cpu_;
    const LoadOptions &options_;
    const char *const call_;
    mutable std::vector<Map> maps_;  // by file
    mutable ReadTeam team_;
};

void TensorLoader::check(const Stored::Place &place) const
{
    const StoredTensors::Tensor &stored = *place.tensor;
    const std::string name = shown_name(from_.name(place));
    if (stored.dtype->dtype == YOKE_NONE)
        fail(
            YOKE_E_CHECKPOINT,
            "%s: tensor '%s' is %.*s, a dtype that Yoke does not have; load the other tensors by their names",
            from_.file(place).path(), name.c_str(), static_cast<int>(stored.dtype->name.size()),
            stored.dtype->name.data());
    if (stored.ndim > YOKE_MAX_NDIM)
        fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' has %u axes; a tensor of Yoke has at most %d",
             from_.file(place).path(), name.c_str(), stored.ndim, YOKE_MAX_NDIM);
    int64_t numel = 0;
    if (const IntList shape = this->shape(place); !count_elements(shape, numel))
        fail(YOKE_E_CHECKPOINT,
             "%s: tensor '%s' has the shape %s, with more elements than memory can address",
             from_.file(place).path(), name.c_str(), to_string(shape).c_str());
}

const TensorLoader::Map &TensorLoader::map_of(const Stored::Place &place) const
{
    Map &known = maps_[place.file];
    if (known.is_known) return known;
    known.map = from_.file(place).file().map();
    known.is_known = true;
    if (known.map) return known;
    known.error = errno;
    log(LogLevel::kInfo, "%s: '%s' cannot be mapped, so its data is read: %s", call_,
        from_.file(place).path(), std::generic_category().message(known.error).c_str());
    return known;
}

Tensor TensorLoader::mapped(const Stored::Place &place, const Map &map, uint64_t offset) const
{
    auto held = std::make_unique<std::shared_ptr<MappedFile>>(map.map);
    Tensor made = from_memory(
        (*held)->data() + offset, shape(place), nullptr, place.tensor->dtype->dtype, cpu_,
        [](void *user) { delete static_cast<std::shared_ptr<MappedFile> *>(user); }, held.get(),
        call_);
    (void)held.release();
    return made;
}

Tensor TensorLoader::as_stored(const Stored::Place &place) const
{
    const StoredFile &file = from_.file(place);
    const uint64_t offset = file.data_begin() + place.tensor->begin;
    const uint64_t bytes = place.tensor->end - place.tensor->begin;
    const yoke_dtype dtype = place.tensor->dtype->dtype;
    if (!is_on_host()) return on_device(place, offset);
    const bool fits = offset % item_size(dtype) == 0 && bytes > 0;
    if (!fits || !options_.mmap) return read(place, offset);
    const Map &map = map_of(place);
    return map.map ? mapped(place, map, offset) : read_unmapped(place, map, offset);
}

// Reads a tensor of a file that could not be mapped. If memory is missing for the tensor as it was for the map,
// raises YOKE_E_IO, so the error names the file.
Tensor TensorLoader::read_unmapped(const Stored::Place &place, const Map &map,
                                   uint64_t offset) const
{
    try {
        return read(place, offset);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_OOM || map.error != ENOMEM) throw;
        fail_io(call_, "map", from_.file(place).path(), map.error);
    }
}

Tensor TensorLoader::read(const Stored::Place &place, uint64_t offset) const
{
    Tensor made = make_tensor(cpu_, place.tensor->dtype->dtype, shape(place), call_);
    if (made->numel > 0) team_.read(from_.file(place).file(), offset, made);
    return made;
}

Tensor TensorLoader::on_device(const Stored::Place &place, uint64_t offset) const
{
    Tensor made = make_tensor(*options_.device, place.tensor->dtype->dtype, shape(place), call_);
    const uint64_t bytes = made->nbytes();
    if (bytes == 0) return made;
    const Map &map = map_of(place);
    if (map.map) {
        copy_from_host(*made, map.map->data() + offset, bytes, call_);
        return made;
    }
    const Tensor host = read_unmapped(place, map, offset);
    finish();
    copy_from_host(*made, host->data, bytes, call_);
    return made;
}

Tensor TensorLoader::load(const Stored::Place &place) const
{
    check(place);
    Tensor found = as_stored(place);
    const bool is_cast =
        options_.dtype != YOKE_NONE && options_.dtype != found->dtype && is_floating(found->dtype);
    if (!is_cast) return found;
    finish();
    return ops::cast(*found, options_.dtype);
}

Ref<State> load_flat(const Stored &from, const TensorLoader &loader, const LoadOptions &options,
                     const char *call)
{
    Ref<State> dict = State::make(StateDict());
    for (const Stored::Place &each : from.tensors()) {
        const std::string_view name = from.name(each);
        if (!options.wanted || options.wanted(name))
            dict->put(std::string(name), State::make(loader.load(each)), call);
    }
    loader.finish();
    return dict;
}

Ref<State> load_tree(const Stored &from, const TensorLoader &loader, std::string_view json)
{
    const char *path = from.path();
    const std::string format(from.metadata(kFormatKey));
    if (format != std::to_string(kTreeFormat))
        fail(
            YOKE_E_CHECKPOINT,
            "%s: the tree has format '%s', but this version reads %d; use a newer version, or load the tensors by name",
            path, shown_name(format).c_str(), kTreeFormat);
    std::unordered_map<std::string_view, Stored::Place> places;
    for (const Stored::Place &each : from.tensors()) places.emplace(from.name(each), each);
    std::unordered_map<std::string_view, Tensor> loaded;
    const auto tensor = [&](std::string_view name) -> Tensor {
        const auto place = places.find(name);
        if (place == places.end()) return {};
        Tensor &known = loaded[place->first];
        if (!known.present()) known = loader.load(place->second);
        return known;
    };
    Ref<State> tree = read_tree(json, tensor, path);
    loader.finish();
    return tree;
}

}  // namespace

Ref<State> load_state(const std::string &path, const LoadOptions &options, const char *call)
{
    const NoGrad no_grad;
    check_not_capturing(call);
    if (options.dtype != YOKE_NONE) check_dtype(options.dtype, call);
    if (options.dtype != YOKE_NONE && !is_floating(options.dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'dtype' is %s; it must be a floating dtype, to which floating tensors are cast",
            call, info(options.dtype).name);
    const Stored from = Stored::open(path, options.check, call);
    const TensorLoader loader(from, open_device("cpu"), options, call);
    const std::string_view tree = from.metadata(kTreeKey);
    if (options.wanted || tree.empty()) return load_flat(from, loader, options, call);
    return load_tree(from, loader, tree);
}

namespace {

Ref<State> number(uint64_t value)
{
    return State::make(static_cast<int64_t>(value));
}

// Returns a file's name as a key. Keys are UTF-8; if the name is not, writes its other bytes as \xNN.
std::string as_key(const std::string &name)
{
    if (is_utf8(name)) return name;
    std::string key;
    for (const unsigned char each : name)
        key += each < 0x80 ? std::string(1, static_cast<char>(each)) : format("\\x%02x", each);
    return key;
}

Ref<State> tensor_info(const Stored &from, const Stored::Place &place, const char *call)
{
    const StoredTensors::Tensor &stored = *place.tensor;
    const Ref<State> one = State::make(StateDict());
    const yoke_dtype dtype = stored.dtype->dtype;
    StateList shape;
    for (const int64_t size : from.file(place).stored().shape(stored))
        shape.items.push_back(State::make(size));
    one->put("dtype", State::make(std::string(dtype ? name(dtype) : stored.dtype->name)), call);
    one->put("shape", State::make(std::move(shape)), call);
    one->put("bytes", number(stored.end - stored.begin), call);
    one->put("offset", number(from.file(place).data_begin() + stored.begin), call);
    if (from.is_set()) one->put("file", State::make(from.file(place).name()), call);
    return one;
}

}  // namespace

Ref<State> load_info(const std::string &path, const char *call)
{
    const Stored from = Stored::open(path, {}, call);
    const Ref<State> info = State::make(StateDict()), tensors = State::make(StateDict()),
                     metadata = State::make(StateDict()), files = State::make(StateDict());
    for (const Stored::Place &each : from.tensors())
        tensors->put(std::string(from.name(each)), tensor_info(from, each, call), call);
    for (size_t i = 0; i < from.metadata_count(); ++i) {
        const auto &[key, value] = from.metadata(i);
        if (!key.starts_with(kOwnKeys))
            metadata->put(std::string(key), State::make(std::string(value)), call);
    }
    uint64_t bytes = from.index_bytes(), header_bytes = 0;
    for (const StoredFile &file : from.files()) {
        bytes += file.file().size();
        header_bytes += file.header_bytes();
        files->put(as_key(file.name()), number(file.file().size()), call);
    }
    info->put("path", State::make(std::string(from.path())), call);
    info->put("kind", State::make(std::string(from.is_set() ? "set" : "file")), call);
    info->put("bytes", number(bytes), call);
    info->put("header_bytes", number(header_bytes), call);
    info->put("files", files, call);
    info->put("tensors", tensors, call);
    info->put("metadata", metadata, call);
    info->put("has_tree", State::make(!from.metadata(kTreeKey).empty()), call);
    return info;
}

}  // namespace yoke
