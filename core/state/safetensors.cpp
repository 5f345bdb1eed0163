#include "core/state/safetensors.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/tree_text.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <numeric>
#include <optional>

namespace yoke {

namespace {

struct Format {
    std::string_view name;
    uint32_t bits;
};
// As the format's own reader orders them; a name that Yoke has too is found among its dtypes.
constexpr Format kFormats[] = {
    {"U64", 64}, {"I64", 64},    {"F64", 64},    {"C64", 64},    {"F32", 32},
    {"U32", 32}, {"I32", 32},    {"BF16", 16},   {"F16", 16},    {"U16", 16},
    {"I16", 16}, {"F8_E8M0", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"I8", 8},
    {"U8", 8},   {"F6_E3M2", 6}, {"F6_E2M3", 6}, {"F4", 4},      {"BOOL", 8},
};

// The format's, and behind them what Yoke alone has.
const std::vector<StoredDtype> &stored_dtypes()
{
    static const auto dtypes = [] {
        std::vector<StoredDtype> all;
        for (const Format &format : kFormats) all.push_back({format.name, format.bits, YOKE_NONE});
        for (yoke_dtype dtype = YOKE_NONE + 1; dtype < YOKE_DTYPE_COUNT; ++dtype) {
            const char *name = info(dtype).stored;
            if (!name) continue;
            const auto known = std::ranges::find(all, std::string_view(name), &StoredDtype::name);
            if (known != all.end())
                known->dtype = dtype;
            else
                all.push_back({name, 8u * info(dtype).size, dtype});
        }
        return all;
    }();
    return dtypes;
}

}  // namespace

std::string shown_name(std::string_view name)
{
    constexpr size_t kMost = 120;
    size_t length = std::min(name.size(), kMost);
    while (length > 0 && length < name.size() && is_continuation(name[length])) --length;
    std::string text;
    for (const char c : name.substr(0, length))
        text += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
    return name.size() > length ? text + "…" : text;
}

const StoredDtype *stored_dtype(std::string_view name)
{
    for (const StoredDtype &dtype : stored_dtypes())
        if (dtype.name == name) return &dtype;
    return nullptr;
}

const StoredDtype *stored_dtype(yoke_dtype dtype)
{
    for (const StoredDtype &known : stored_dtypes())
        if (known.dtype == dtype) return &known;
    return nullptr;
}

std::pair<std::string_view, std::string_view> StoredTensors::metadata(size_t i) const
{
    const Pair &pair = metadata_[i];
    return {text(pair.key, pair.key_length), text(pair.value, pair.value_length)};
}

// ---- What no reader of JSON sees ------------------------------------------------------------------------------

namespace {

// The place of a text that comes a second time among `count`; count if none does.
template <class TextOf>
size_t find_twice(size_t count, TextOf text)
{
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, text);
    for (size_t i = 1; i < count; ++i)
        if (text(order[i]) == text(order[i - 1])) return order[i];
    return count;
}

}  // namespace

void StoredTensors::refuse(const Tensor &tensor, const std::string &rule, const char *path) const
{
    fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' %s (data_offsets %llu to %llu)", path,
         shown_name(name(tensor)).c_str(), rule.c_str(),
         static_cast<unsigned long long>(tensor.begin),
         static_cast<unsigned long long>(tensor.end));
}

void StoredTensors::check_names(const char *path) const
{
    const size_t tensor = find_twice(tensors_.size(), [&](size_t i) { return name(tensors_[i]); });
    if (tensor < tensors_.size()) refuse(tensors_[tensor], "stands in the header twice", path);
    const size_t pair = find_twice(metadata_.size(), [&](size_t i) { return metadata(i).first; });
    if (pair < metadata_.size())
        fail(YOKE_E_CHECKPOINT, "%s: the metadata has '%s' twice", path,
             shown_name(metadata(pair).first).c_str());
}

// By shape and dtype.
uint64_t StoredTensors::bytes_of(const Tensor &tensor, const char *path) const
{
    uint64_t bits = 1;
    bool overflow = false;
    for (const int64_t size : shape(tensor))
        overflow |= __builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits);
    overflow |= __builtin_mul_overflow(bits, uint64_t{tensor.dtype->bits}, &bits);
    if (overflow) refuse(tensor, "has a shape of more elements than can be counted", path);
    if (bits % 8) refuse(tensor, "does not end with a whole byte", path);
    return bits / 8;
}

// The data is covered from end to end, by one tensor each.
void StoredTensors::check_data(uint64_t data_bytes, const char *path)
{
    std::ranges::sort(tensors_, {}, [](const Tensor &t) { return std::pair(t.begin, t.end); });
    uint64_t end = 0;
    for (const Tensor &tensor : tensors_) {
        if (tensor.begin != end)
            refuse(tensor,
                   format("begins where the data before does not end, at %llu",
                          static_cast<unsigned long long>(end)),
                   path);
        if (tensor.end < tensor.begin) refuse(tensor, "ends before it begins", path);
        const uint64_t bytes = bytes_of(tensor, path);
        if (tensor.end - tensor.begin != bytes)
            refuse(tensor,
                   format("takes %llu bytes by shape and dtype",
                          static_cast<unsigned long long>(bytes)),
                   path);
        end = tensor.end;
    }
    if (end != data_bytes)
        fail(YOKE_E_CHECKPOINT,
             "%s: the tensors take %llu bytes, and behind the header there are %llu", path,
             static_cast<unsigned long long>(end), static_cast<unsigned long long>(data_bytes));
}

// ---- Writing --------------------------------------------------------------------------------------------------

namespace {

constexpr size_t kAlignment = 64, kLengthBytes = 8;

void put_metadata(std::string &json,
                  const std::vector<std::pair<std::string, std::string>> &metadata)
{
    json += "\"__metadata__\":{";
    for (const auto &[key, value] : metadata) {
        if (json.back() != '{') json += ',';
        put_json_text(json, key);
        json += ':';
        put_json_text(json, value);
    }
    json += '}';
}

void put_tensor(std::string &json, const TensorToStore &tensor)
{
    put_json_text(json, tensor.name);
    json += ":{\"dtype\":\"";
    json += stored_dtype(tensor.dtype)->name;
    json += "\",\"shape\":[";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
        json += (i ? "," : "") + std::to_string(tensor.shape[i]);
    json += "],\"data_offsets\":[" + std::to_string(tensor.begin) + "," +
            std::to_string(tensor.begin + tensor.bytes) + "]}";
}

}  // namespace

std::string make_stored_header(std::vector<TensorToStore> &tensors,
                               const std::vector<std::pair<std::string, std::string>> &metadata)
{
    std::ranges::sort(tensors, {}, [](const TensorToStore &t) {
        return std::pair(stored_dtype(t.dtype), std::string_view(t.name));
    });
    uint64_t end = 0;
    for (TensorToStore &tensor : tensors) tensor.begin = std::exchange(end, end + tensor.bytes);
    std::string json(kLengthBytes, '\0');
    json += '{';
    if (!metadata.empty()) put_metadata(json, metadata);
    for (const TensorToStore &tensor : tensors) {
        if (json.back() != '{') json += ',';
        put_tensor(json, tensor);
    }
    json += '}';
    json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    for (size_t i = 0; i < kLengthBytes; ++i)
        json[i] = static_cast<char>((json.size() - kLengthBytes) >> (8 * i));
    return json;
}

}  // namespace yoke
