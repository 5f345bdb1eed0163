#include "core/state/load.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/select/select.h"
#include "core/state/files.h"
#include "core/state/safetensors.h"
#include "core/state/save.h"
#include "core/state/tree_text.h"

#include <cstring>
#include <unordered_map>

namespace yoke {

namespace {

constexpr uint64_t kLengthBytes = 8;

uint64_t read_length(const ReadFile &file, const std::string &path)
{
    unsigned char bytes[kLengthBytes];
    if (file.size() < kLengthBytes)
        fail(YOKE_E_CHECKPOINT,
             "%s: it has %llu bytes; a safetensors file begins with the 8 of its header's length",
             path.c_str(), static_cast<unsigned long long>(file.size()));
    file.read(0, bytes, sizeof bytes);
    uint64_t length = 0;
    for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{bytes[i]} << (8 * i);
    if (length > StoredTensors::kMostHeader || length > file.size() - kLengthBytes)
        fail(
            YOKE_E_CHECKPOINT,
            "%s: its header would have %llu bytes, of at most %llu, in a file of %llu; it is no safetensors file, or was cut short",
            path.c_str(), static_cast<unsigned long long>(length),
            static_cast<unsigned long long>(StoredTensors::kMostHeader),
            static_cast<unsigned long long>(file.size()));
    return length;
}

// An open file and what its header says.
class StoredFile {
public:
    StoredFile(const std::string &path, const LoadOptions &options, const char *call)
        : path_(path),
          file_(checked(ReadFile(call, path), options)),
          header_bytes_(read_length(file_, path)),
          stored_(read_header())
    {
    }
    const StoredTensors &stored() const { return stored_; }
    const ReadFile &file() const { return file_; }
    const char *path() const { return path_.c_str(); }
    uint64_t header_bytes() const { return header_bytes_; }
    uint64_t data_begin() const { return kLengthBytes + header_bytes_; }
    // "" where there is none.
    std::string_view metadata(std::string_view key) const;

private:
    static ReadFile checked(ReadFile file, const LoadOptions &options)
    {
        if (options.check) options.check(file);
        return file;
    }
    StoredTensors read_header() const
    {
        std::string header(header_bytes_, '\0');
        file_.read(kLengthBytes, header.data(), header.size());
        return StoredTensors::read(header, file_.size(), path());
    }

    std::string path_;
    ReadFile file_;
    uint64_t header_bytes_;
    StoredTensors stored_;
};

std::string_view StoredFile::metadata(std::string_view key) const
{
    for (size_t i = 0; i < stored_.metadata_count(); ++i)
        if (stored_.metadata(i).first == key) return stored_.metadata(i).second;
    return {};
}

// Tensors out of one file, each made once.
class Loader {
public:
    Loader(const StoredFile &from, Device &cpu, const LoadOptions &options, const char *call)
        : from_(from), cpu_(cpu), options_(options), call_(call)
    {
    }
    Tensor load(const StoredTensors::Tensor &stored) const;

private:
    bool is_on_host() const { return !options_.device || options_.device->host; }
    void check(const StoredTensors::Tensor &stored) const;
    Tensor as_stored(const StoredTensors::Tensor &stored) const;
    Tensor mapped(const StoredTensors::Tensor &stored, uint64_t offset) const;

    const StoredFile &from_;
    Device &cpu_;
    const LoadOptions &options_;
    const char *const call_;
    mutable std::shared_ptr<MappedFile> map_;
};

void Loader::check(const StoredTensors::Tensor &stored) const
{
    const std::string name = shown_name(from_.stored().name(stored));
    if (stored.dtype->dtype == YOKE_NONE)
        fail(YOKE_E_CHECKPOINT,
             "%s: tensor '%s' is %.*s, a dtype that Yoke has not; load the others by their names",
             from_.path(), name.c_str(), static_cast<int>(stored.dtype->name.size()),
             stored.dtype->name.data());
    if (stored.ndim > YOKE_MAX_NDIM)
        fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' has %u axes; a tensor of Yoke has at most %d",
             from_.path(), name.c_str(), stored.ndim, YOKE_MAX_NDIM);
}

Tensor Loader::mapped(const StoredTensors::Tensor &stored, uint64_t offset) const
{
    if (!map_) map_ = from_.file().map();
    auto held = std::make_unique<std::shared_ptr<MappedFile>>(map_);
    Tensor made = from_memory(
        static_cast<char *>(map_->data()) + offset, from_.stored().shape(stored), nullptr,
        stored.dtype->dtype, cpu_,
        [](void *user) { delete static_cast<std::shared_ptr<MappedFile> *>(user); }, held.get(),
        call_);
    (void)held.release();
    return made;
}

Tensor Loader::as_stored(const StoredTensors::Tensor &stored) const
{
    const uint64_t offset = from_.data_begin() + stored.begin, bytes = stored.end - stored.begin;
    const yoke_dtype dtype = stored.dtype->dtype;
    const bool fits = offset % item_size(dtype) == 0 && bytes > 0;
    if (fits && is_on_host() && options_.mmap) return mapped(stored, offset);
    Device &device = is_on_host() ? cpu_ : *options_.device;
    Tensor made = make_tensor(device, dtype, from_.stored().shape(stored), call_);
    if (device.host) {
        if (bytes) from_.file().read(offset, made->data, bytes);
        return made;
    }
    if (!map_ && bytes) map_ = from_.file().map();
    if (bytes)
        copy_from_host(*made, static_cast<const char *>(map_->data()) + offset, bytes, call_);
    return made;
}

Tensor Loader::load(const StoredTensors::Tensor &stored) const
{
    check(stored);
    Tensor found = as_stored(stored);
    const bool is_cast =
        options_.dtype != YOKE_NONE && options_.dtype != found->dtype && is_floating(found->dtype);
    return is_cast ? ops::cast(*found, options_.dtype) : found;
}

Ref<State> load_flat(const StoredFile &from, const Loader &loader, const LoadOptions &options,
                     const char *call)
{
    Ref<State> dict = State::make(StateDict());
    for (const StoredTensors::Tensor &each : from.stored().tensors()) {
        const std::string_view name = from.stored().name(each);
        if (!options.wanted || options.wanted(name))
            dict->put(std::string(name), State::make(loader.load(each)), call);
    }
    return dict;
}

Ref<State> load_tree(const StoredFile &from, const Loader &loader, std::string_view json)
{
    const char *path = from.path();
    const std::string format(from.metadata(kFormatKey));
    if (format != std::to_string(kTreeFormat))
        fail(
            YOKE_E_CHECKPOINT,
            "%s: its tree is of format '%s', and this version reads %d; load it with a newer one, or its tensors by name",
            path, shown_name(format).c_str(), kTreeFormat);
    std::unordered_map<std::string_view, const StoredTensors::Tensor *> places;
    for (const StoredTensors::Tensor &each : from.stored().tensors())
        places.emplace(from.stored().name(each), &each);
    std::unordered_map<std::string_view, Tensor> loaded;
    const auto tensor = [&](std::string_view name) -> Tensor {
        const auto place = places.find(name);
        if (place == places.end()) return {};
        Tensor &known = loaded[place->first];
        if (!known.present()) known = loader.load(*place->second);
        return known;
    };
    return read_tree(json, tensor, path);
}

}  // namespace

Ref<State> load_state(const std::string &path, const LoadOptions &options, const char *call)
{
    const NoGrad no_grad;
    if (options.dtype != YOKE_NONE) check_dtype(options.dtype, call);
    if (options.dtype != YOKE_NONE && !is_floating(options.dtype))
        fail(YOKE_E_TYPE, "%s: argument 'dtype' is %s; what floats is cast to a dtype that floats",
             call, info(options.dtype).name);
    const StoredFile from(path, options, call);
    const Loader loader(from, open_device("cpu"), options, call);
    const std::string_view tree = from.metadata(kTreeKey);
    if (options.wanted || tree.empty()) return load_flat(from, loader, options, call);
    return load_tree(from, loader, tree);
}

Ref<State> load_info(const std::string &path, const char *call)
{
    const StoredFile from(path, {}, call);
    const auto number = [](uint64_t value) { return State::make(static_cast<int64_t>(value)); };
    const Ref<State> info = State::make(StateDict()), tensors = State::make(StateDict()),
                     metadata = State::make(StateDict());
    for (const StoredTensors::Tensor &each : from.stored().tensors()) {
        const Ref<State> one = State::make(StateDict());
        const yoke_dtype dtype = each.dtype->dtype;
        StateList shape;
        for (const int64_t size : from.stored().shape(each))
            shape.items.push_back(State::make(size));
        one->put("dtype", State::make(std::string(dtype ? name(dtype) : each.dtype->name)), call);
        one->put("shape", State::make(std::move(shape)), call);
        one->put("bytes", number(each.end - each.begin), call);
        one->put("offset", number(from.data_begin() + each.begin), call);
        tensors->put(std::string(from.stored().name(each)), one, call);
    }
    for (size_t i = 0; i < from.stored().metadata_count(); ++i) {
        const auto &[key, value] = from.stored().metadata(i);
        if (!key.starts_with(kOwnKeys))
            metadata->put(std::string(key), State::make(std::string(value)), call);
    }
    info->put("path", State::make(path), call);
    info->put("bytes", number(from.file().size()), call);
    info->put("header_bytes", number(from.header_bytes()), call);
    info->put("tensors", tensors, call);
    info->put("metadata", metadata, call);
    info->put("has_tree", State::make(!from.metadata(kTreeKey).empty()), call);
    return info;
}

}  // namespace yoke
