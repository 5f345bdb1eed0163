#include "core/state/set_names.h"

#include "core/base/error.h"

#include <algorithm>

namespace yoke {

namespace {

constexpr std::string_view kFileEnd = ".safetensors", kIndexEnd = ".index.json", kOf = "-of-";
constexpr size_t kDigits = 8;        // random digits of a save
constexpr size_t kFewestDigits = 5;  // digits of a file's number

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool are_digits(std::string_view text)
{
    return text.size() >= kFewestDigits && std::ranges::all_of(text, is_digit);
}

// Reads the numbers of "…NNNNN-of-NNNNN.safetensors" and the text before. Returns false for other names.
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

// Returns "model" for "model.safetensors.index.json": the name without these two ends.
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

}  // namespace yoke
