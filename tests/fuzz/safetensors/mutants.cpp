#include "tests/fuzz/safetensors/mutants.h"

#include "core/ops/ops.h"
#include "core/select/select.h"
#include "core/state/save.h"
#include "core/state/writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>

namespace yoke::fuzz {

namespace {

constexpr size_t kLengthBytes = 8;

std::string with_length(const std::string &header, const std::string &data)
{
    std::string file(kLengthBytes, '\0');
    const uint64_t length = header.size();
    memcpy(file.data(), &length, sizeof length);  // little-endian, as the format has it
    return file + header + data;
}

// ---- Whole files ----------------------------------------------------------------------------------------------------

Ref<State> a_tree()
{
    constexpr const char *call = "save";
    const auto tensor = [&](std::vector<int64_t> shape, yoke_dtype dtype) {
        Tensor made = make_tensor(open_device("cpu"), dtype, shape, call);
        if (made->numel) memset(made->data, 0x3c, made->nbytes());
        return State::make(std::move(made));
    };
    Ref<State> root = State::make(StateDict());
    const Ref<State> weight = tensor({2, 3}, YOKE_F32);
    root->set("net/weight", weight, call);
    root->set("net/tied", weight, call);
    root->set("net/0", tensor({}, YOKE_BF16), call);
    root->set("none", tensor({0, 4}, YOKE_I64), call);
    root->set("steps", State::make(StateList{{State::make(int64_t{3}), State::make(-0.0)}, true}),
              call);
    root->set("more", State::make(StateList{{State::make(true), State::make()}, false}), call);
    root->set("nan", State::make(std::numeric_limits<double>::quiet_NaN()), call);
    root->set("text", State::make(std::string("\"\\ü\n")), call);
    root->put(int64_t{-7}, State::make(std::numeric_limits<int64_t>::min()), call);
    root->put(std::string("$tuple"), State::make(StateDict()), call);
    return root;
}

std::string saved(const State &state)
{
    const StateToSave to_save = StateToSave::of(state, {}, "save");
    std::string bytes = to_save.files[0].header;
    for (const Tensor &each : to_save.tensors)
        for_each_chunk(
            *each,
            [&](const void *from, uint64_t n) { bytes.append(static_cast<const char *>(from), n); },
            "save");
    return bytes;
}

}  // namespace

const std::vector<std::string> &whole_files()
{
    static const std::vector<std::string> files = [] {
        std::string deep = "[]";
        for (int i = 1; i < State::kDeepest; ++i) deep = R"({\"$dict\":[[7,)" + deep + "]]}";
        const auto tree = [](const std::string &text) {
            return R"({"__metadata__":{"yoke.format":"1","yoke.tree":")" + text + R"("}})";
        };
        return std::vector<std::string>{
            with_length("{}", ""),
            with_length(R"({"x":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "abcde"),
            with_length(
                R"({"x":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5],"data_offsets":[0,5]}})",
                "abcde"),
            with_length(
                R"({"x":{"dtype":"I8","shape":[1073741824,0,536870912],"data_offsets":[0,0]},"y":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3]}})",
                "abc"),
            with_length(
                R"({"b":{"data_offsets":[8,24],"shape":[2,2],"dtype":"F32"},"__metadata__":{"format":"pt","a":"b"},)"
                R"("a":{"dtype":"I64","shape":[],"data_offsets":[0,8],"more":[{"x":null},-1.5e3]},)"
                R"("none":{"dtype":"BF16","shape":[3,0],"data_offsets":[24,24]}}   )",
                std::string(24, '\x3f')),
            with_length(
                R"({"\u00fc\ud834\udd1e":{"dtype":"F16","shape":[1,1,2],"data_offsets":[0,4]},"4":{"dtype":"F4","shape":[4],"data_offsets":[4,6]}})",
                "abcdef"),
            with_length(
                tree(R"([{\"$tuple\":[]},{\"$float\":\"nan\"},{\"$tuple\":[7]},-0.0,1e300])"), ""),
            with_length(tree(deep), ""),
            saved(*a_tree()),
            saved(*a_tree()->find("net", "save")),
        };
    }();
    return files;
}

// ---- Changes of a text ----------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kWords[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       ",",
                                       ":",
                                       "\"",
                                       "\\",
                                       "null",
                                       "true",
                                       "[]",
                                       "{}",
                                       "\"\"",
                                       " ",
                                       "\n",
                                       "\\u0000",
                                       "\\ud834",
                                       "\\udd1e",
                                       "\"x\"",
                                       "\"dtype\"",
                                       "\"shape\"",
                                       "\"data_offsets\"",
                                       "\"__metadata__\"",
                                       "\"F32\"",
                                       "\"F64\"",
                                       "\"I32\"",
                                       "\"U8\"",
                                       "\"I8\"",
                                       "\"BOOL\"",
                                       "\"F16\"",
                                       "\"BF16\"",
                                       "\"F8_E4M3\"",
                                       "\"F6_E2M3\"",
                                       "\"U64\"",
                                       "\"F31\"",
                                       "\"yoke.tree\"",
                                       "\"yoke.format\"",
                                       "\"2\"",
                                       "[0,0]",
                                       "\"a\":1,",
                                       "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"};
constexpr std::string_view kTreeWords[] = {"{\"$tensor\":",
                                           "{\"$float\":\"inf\"}",
                                           "{\"$float\":\"0x7ff4000000000000\"}",
                                           "{\"$tuple\":",
                                           "{\"$dict\":",
                                           "\"$more\":1,",
                                           ",\"a\":1",
                                           "{\"a\":1}",
                                           "[1,2]",
                                           "[1,",
                                           "]",
                                           "{",
                                           "}",
                                           "\"a\":1,",
                                           "null",
                                           "1.5",
                                           "\"net.weight\""};
constexpr std::string_view kNumbers[] = {"0",
                                         "1",
                                         "-1",
                                         "2",
                                         "3",
                                         "4",
                                         "5",
                                         "8",
                                         "16",
                                         "24",
                                         "255",
                                         "4294967296",
                                         "2147483648",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "18446744073709551615",
                                         "18446744073709551616",
                                         "-9223372036854775808",
                                         "-9223372036854775809",
                                         "4611686018427387904",
                                         "0.5",
                                         "1e3",
                                         "1e999",
                                         "-0",
                                         "-0.0",
                                         "5e-324",
                                         "00",
                                         "1.",
                                         "0x1"};

template <size_t kCount>
std::string_view one_of(const std::string_view (&words)[kCount], Draw &draw)
{
    return words[draw.below(kCount)];
}

struct Span {
    size_t begin, length;
};

// Strings, numbers, words and signs, as far as the text is JSON.
std::vector<Span> tokens_of(std::string_view text)
{
    const auto is_word = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' ||
               c == '.' || c == 'E';
    };
    std::vector<Span> found;
    for (size_t i = 0; i < text.size();) {
        const size_t begin = i++;
        if (text[begin] == '"') {
            while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
            i = std::min(i + 1, text.size());
        } else if (is_word(text[begin])) {
            while (i < text.size() && is_word(text[i])) ++i;
        }
        found.push_back({begin, i - begin});
    }
    return found;
}

void change_tokens(std::string &text, Draw &draw)
{
    const std::vector<Span> tokens = tokens_of(text);
    if (tokens.empty()) return;
    const Span one = tokens[draw.below(tokens.size())], other = tokens[draw.below(tokens.size())];
    const std::string copy = text.substr(other.begin, other.length);
    switch (draw.below(6)) {
        case 0:
            text.erase(one.begin, one.length);
            return;
        case 1:
            text.insert(one.begin, copy);
            return;
        case 2:
            text.replace(one.begin, one.length, copy);
            return;
        case 3:
            text.replace(one.begin, one.length, one_of(kWords, draw));
            return;
        case 4:
            text.insert(one.begin, one_of(kWords, draw));
            return;
        default: {  // from a place to another, once more, or many times
            const size_t begin = std::min(one.begin, other.begin);
            const size_t end = std::max(one.begin + one.length, other.begin + other.length);
            const std::string part = text.substr(begin, end - begin);
            const uint64_t times = draw.one_in(8) ? 200 : 1;
            for (uint64_t i = 0; i < times && text.size() < 100'000; ++i) text.insert(begin, part);
        }
    }
}

// Replaces a number by a number, or a string by a string. The result is often a whole file.
void exchange_alike(std::string &text, Draw &draw)
{
    const bool is_number = draw.one_in(2);
    std::vector<Span> alike;
    for (const Span &token : tokens_of(text)) {
        const char first = text[token.begin];
        const bool is_digit = (first >= '0' && first <= '9') || first == '-';
        if (is_number ? is_digit : first == '"') alike.push_back(token);
    }
    if (alike.empty()) return;
    const Span one = alike[draw.below(alike.size())], other = alike[draw.below(alike.size())];
    std::string with = text.substr(other.begin, other.length);
    if (is_number && draw.one_in(2)) with = one_of(kNumbers, draw);
    if (!is_number && draw.one_in(2)) with = "\"" + std::to_string(draw.below(100)) + "\"";
    text.replace(one.begin, one.length, with);
}

void change_bytes(std::string &text, Draw &draw)
{
    const size_t at = draw.below(text.size() + 1), count = draw.below(16);
    switch (draw.below(4)) {
        case 0:
            if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << draw.below(8)));
            return;
        case 1:
            text.erase(at, count);
            return;
        case 2:
            text.insert(at, text.substr(draw.below(text.size() + 1), count));
            return;
        default:
            text.insert(at, 1 + count / 8, static_cast<char>(draw.below(256)));
    }
}

void change_text(std::string &text, Draw &draw)
{
    switch (draw.below(3)) {
        case 0:
            return change_tokens(text, draw);
        case 1:
            return exchange_alike(text, draw);
        default:
            return change_bytes(text, draw);
    }
}

// ---- Changes of a file ----------------------------------------------------------------------------------------------

// The text of a tree stands in a string of the header.
void change_tree(std::string &header, Draw &draw)
{
    constexpr std::string_view kBefore = "\"yoke.tree\":\"";
    const size_t at = header.find(kBefore);
    if (at == std::string::npos) return change_text(header, draw);
    const size_t begin = at + kBefore.size();
    std::string text;
    size_t end = begin;
    for (; end < header.size() && header[end] != '"'; ++end) {
        if (header[end] == '\\' && end + 1 < header.size()) ++end;
        text += header[end];
    }
    if (const std::vector<Span> tokens = tokens_of(text); draw.one_in(2) && !tokens.empty())
        text.insert(tokens[draw.below(tokens.size())].begin, one_of(kTreeWords, draw));
    else
        change_text(text, draw);
    std::string written;
    for (const char c : text) {
        if (c == '"' || c == '\\') written += '\\';
        written += c;
    }
    header.replace(begin, std::min(end, header.size()) - begin, written);
}

void change_data(std::string &data, Draw &draw)
{
    if (draw.one_in(2))
        change_bytes(data, draw);
    else if (!data.empty())
        data[draw.below(data.size())] = static_cast<char>(draw.below(256));
}

size_t header_end(const std::string &file)
{
    uint64_t length = 0;
    memcpy(&length, file.data(), std::min(file.size(), kLengthBytes));
    return kLengthBytes +
           std::min<uint64_t>(length, file.size() - std::min(file.size(), kLengthBytes));
}

}  // namespace

std::string mutant_of(const std::string &file, Draw &draw)
{
    if (file.size() < kLengthBytes) return file + "{}";
    const size_t end = header_end(file);
    std::string header = file.substr(kLengthBytes, end - kLengthBytes), data = file.substr(end);
    for (uint64_t changes = 1 + draw.below(4); changes > 0; --changes) {
        const uint64_t where = draw.below(8);
        if (where < 4)
            change_text(header, draw);
        else if (where < 7)
            change_tree(header, draw);
        else
            change_data(data, draw);
    }
    if (draw.one_in(16)) header.append(draw.below(9), ' ');
    std::string made = with_length(header, data);
    constexpr std::array<uint64_t, 5> kLengths = {0, 1, 100'000'001, uint64_t{1} << 62, UINT64_MAX};
    if (draw.one_in(32)) memcpy(made.data(), &kLengths[draw.below(kLengths.size())], kLengthBytes);
    if (draw.one_in(32)) made[0] = static_cast<char>(draw.below(256));
    if (draw.one_in(32)) made.resize(draw.below(made.size() + 1));
    return made;
}

void mend_length(std::string &file)
{
    if (file.size() < kLengthBytes) return;
    const size_t last = file.rfind('}');
    const uint64_t length =
        last == std::string::npos || last < kLengthBytes ? 0 : last + 1 - kLengthBytes;
    memcpy(file.data(), &length, sizeof length);
}

}  // namespace yoke::fuzz
