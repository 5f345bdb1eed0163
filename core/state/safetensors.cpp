#include "core/state/safetensors.h"

#include "core/state/tree_text.h"

#include <algorithm>

namespace yoke {

namespace {

struct Format {
    std::string_view name;
    uint32_t bits;
};
// In the order of the format's own reader. If Yoke has a dtype of this name too, the dtype is filled in.
constexpr Format kFormats[] = {
    {"U64", 64}, {"I64", 64},    {"F64", 64},    {"C64", 64},    {"F32", 32},
    {"U32", 32}, {"I32", 32},    {"BF16", 16},   {"F16", 16},    {"U16", 16},
    {"I16", 16}, {"F8_E8M0", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"I8", 8},
    {"U8", 8},   {"F6_E3M2", 6}, {"F6_E2M3", 6}, {"F4", 4},      {"BOOL", 8},
};

// Returns the format's dtypes, then the dtypes of Yoke alone.
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

void put_tensor(std::string &json, const NamedTensor &named, uint64_t begin)
{
    const yoke_tensor &tensor = *named.second;
    put_json_text(json, named.first);
    json += ":{\"dtype\":\"";
    json += stored_dtype(tensor.dtype)->name;
    json += "\",\"shape\":[";
    for (const int64_t size : tensor.shape()) {
        if (json.back() != '[') json += ',';
        json += std::to_string(size);
    }
    json += "],\"data_offsets\":[" + std::to_string(begin) + "," +
            std::to_string(begin + tensor.nbytes()) + "]}";
}

}  // namespace

std::string make_stored_header(std::vector<const NamedTensor *> &tensors,
                               const std::vector<std::pair<std::string, std::string>> &metadata)
{
    std::ranges::sort(tensors, {}, [](const NamedTensor *each) {
        return std::pair(stored_dtype(each->second->dtype), std::string_view(each->first));
    });
    std::string json(kLengthBytes, '\0');
    json += '{';
    if (!metadata.empty()) put_metadata(json, metadata);
    uint64_t begin = 0;
    for (const NamedTensor *each : tensors) {
        if (json.back() != '{') json += ',';
        put_tensor(json, *each, begin);
        begin += each->second->nbytes();
    }
    json += '}';
    json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    for (size_t i = 0; i < kLengthBytes; ++i)
        json[i] = static_cast<char>((json.size() - kLengthBytes) >> (8 * i));
    return json;
}

}  // namespace yoke
