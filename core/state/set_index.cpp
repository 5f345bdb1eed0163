#include "core/state/set_index.h"

#include "core/base/error.h"
#include "core/state/tree_text.h"

#include <algorithm>

namespace yoke {

namespace {

constexpr std::string_view kFileEnd = ".safetensors", kIndexEnd = ".index.json", kOf = "-of-";
constexpr size_t kDigits = 8;        // that a save draws
constexpr size_t kFewestDigits = 5;  // of a file's number

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool are_digits(std::string_view text)
{
    return text.size() >= kFewestDigits && std::ranges::all_of(text, is_digit);
}

// Of "…NNNNN-of-NNNNN.safetensors" the numbers and what stands before; false where it is no such name.
bool read_place(std::string_view name, std::string_view *before, std::string_view *count)
{
    if (!name.ends_with(kFileEnd)) return false;
    name.remove_suffix(kFileEnd.size());
    const size_t of = name.rfind(kOf);
    if (of == std::string_view::npos) return false;
    *count = name.substr(of + kOf.size());
    size_t begin = of;
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    *before = name.substr(0, begin);
    return are_digits(*count) && are_digits(name.substr(begin, of - begin));
}

// "model" of "model.safetensors.index.json".
std::string_view stem_of(std::string_view index)
{
    for (const std::string_view end : {kIndexEnd, kFileEnd})
        if (index.ends_with(end)) index.remove_suffix(end.size());
    return index;
}

}  // namespace

std::string index_name(std::string_view file)
{
    return std::string(file) + std::string(kIndexEnd);
}

std::string_view file_of_index(std::string_view index)
{
    return is_index_name(index) ? index.substr(0, index.size() - kIndexEnd.size()) : "";
}

bool is_index_name(std::string_view name)
{
    return name.ends_with(kIndexEnd);
}

bool is_index_of_others(std::string_view name)
{
    constexpr std::string_view kOthers[] = {".bin", ".h5", ".msgpack"};
    return std::ranges::any_of(
        kOthers, [&](std::string_view end) { return file_of_index(name).ends_with(end); });
}

std::string shard_name(std::string_view index, std::string_view digits, size_t i, size_t count)
{
    return std::string(stem_of(index)) + "-" + std::string(digits) +
           format("-%05zu-of-%05zu", i + 1, count) + std::string(kFileEnd);
}

std::string_view digits_of_shard(std::string_view name, std::string_view index)
{
    std::string_view before, count;
    const std::string_view stem = stem_of(index);
    if (!read_place(name, &before, &count)) return {};
    if (before.size() != stem.size() + kDigits + 2 || !before.starts_with(stem)) return {};
    const std::string_view digits = before.substr(stem.size() + 1, kDigits);
    const bool is_ours = before[stem.size()] == '-' && before.back() == '-' &&
                         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    return is_ours ? digits : std::string_view();
}

bool is_one_of_several(std::string_view name)
{
    std::string_view before, count;
    if (!read_place(name, &before, &count) || !before.ends_with('-')) return false;
    return count.substr(std::min(count.find_first_not_of('0'), count.size())) != "1";
}

bool SetIndex::may_begin(std::string_view bytes)
{
    // A safetensors file begins with a length, the last bytes of which are zero in any that is not too long.
    const size_t first = bytes.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && bytes[first] == '{' &&
           bytes.find('\0') == std::string_view::npos;
}

std::pair<std::string_view, std::string_view> SetIndex::metadata(size_t i) const
{
    return {text(metadata_[i].first), text(metadata_[i].second)};
}

// ---- Writing ----------------------------------------------------------------------------------------------------

namespace {

void put_pair(std::string &json, std::string_view key, std::string_view value)
{
    json += json.back() == '{' ? "\n    " : ",\n    ";
    put_json_text(json, key);
    json += ": ";
    put_json_text(json, value);
}

}  // namespace

std::string make_set_index(const std::vector<FileOfSet> &files,
                           const std::vector<std::pair<std::string, std::string>> &metadata,
                           uint64_t tensor_bytes)
{
    std::vector<std::pair<std::string_view, std::string_view>> places;
    for (const FileOfSet &file : files)
        for (const std::string &tensor : file.tensors) places.emplace_back(tensor, file.name);
    std::ranges::sort(places);
    std::string json = "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(tensor_bytes);
    for (const auto &[key, value] : metadata) put_pair(json, key, value);
    json += "\n  },\n  \"weight_map\": {";
    for (const auto &[tensor, file] : places) put_pair(json, tensor, file);
    return json + "\n  }\n}\n";
}

}  // namespace yoke
