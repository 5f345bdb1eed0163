#include "core/state/tree_text.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/safetensors.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace yoke {

void put_json_text(std::string &json, std::string_view text)
{
    json += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            json += '\\';
            json += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escaped[8];
            snprintf(escaped, sizeof escaped, "\\u%04x", c);
            json += escaped;
        } else {
            json += c;
        }
    }
    json += '"';
}

std::string shown_float(double value)
{
    char text[40];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    std::string digits(text, static_cast<size_t>(end - text));
    if (std::isfinite(value) && digits.find_first_of(".e") == std::string::npos) digits += ".0";
    return digits;
}

namespace {

constexpr uint64_t kPlainNan = 0x7ff8'0000'0000'0000;

void put_float(std::string &json, double value)
{
    if (std::isnan(value)) {
        char text[20];
        const auto bits = std::bit_cast<uint64_t>(value);
        snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(bits));
        json += std::string(R"({"$float":")") + (bits == kPlainNan ? "nan" : text) + "\"}";
        return;
    }
    if (std::isinf(value)) {
        json += value > 0 ? R"({"$float":"inf"})" : R"({"$float":"-inf"})";
        return;
    }
    json += shown_float(value);
}

bool is_plain(const StateDict &dict)
{
    for (const StateDict::Entry &entry : dict.entries()) {
        const auto *text = std::get_if<std::string>(&entry.key);
        if (!text || text->starts_with('$')) return false;
    }
    return true;
}

// Writer of a tree, from the root down.
class TreeWriter {
public:
    TreeWriter(TreeText &text, const char *call) : text_(text), call_(call) {}

    void put(const State &node, const std::string &path, int depth);

private:
    // Identity of a tensor: two tensors are the same if they have the same elements of the same memory, with the same
    // view.
    using Identity = std::tuple<const Storage *, const char *, yoke_dtype, std::vector<int64_t>,
                                std::vector<int64_t>>;

    void put_dict(const StateDict &dict, const std::string &path, int depth);
    void put_list(const StateList &list, const std::string &path, int depth);
    void put_string(const std::string &text, const std::string &path);
    void put_tensor(const Tensor &tensor, const std::string &path);
    std::string name_of(const Tensor &tensor, const std::string &path);
    std::string below(const std::string &path, const StateKey &key) const;

    TreeText &text_;
    const char *const call_;
    std::map<Identity, std::string> names_;
    std::set<std::string> taken_;
};

// Returns a tensor's name below a path. In dicts, the name consists of the keys, as other readers of the file expect.
std::string TreeWriter::below(const std::string &path, const StateKey &key) const
{
    const auto *text = std::get_if<std::string>(&key);
    const std::string part = text ? *text : std::to_string(std::get<int64_t>(key));
    return path.empty() ? part : path + "." + part;
}

void TreeWriter::put(const State &node, const std::string &path, int depth)
{
    const bool is_container = node.kind() == StateKind::kList || node.kind() == StateKind::kDict;
    if (is_container && depth >= State::kDeepest)
        fail(YOKE_E_VALUE, "%s: '%s' is nested more than %d lists and dicts deep", call_,
             shown_name(path).c_str(), State::kDeepest);
    if (text_.json.size() > kMostHeader)
        fail(
            YOKE_E_VALUE,
            "%s: the plain values take more bytes than a file's header may have, %llu; keep long lists of numbers in tensors",
            call_, static_cast<unsigned long long>(kMostHeader));
    switch (node.kind()) {
        case StateKind::kNone:
            text_.json += "null";
            return;
        case StateKind::kBool:
            text_.json += *node.get_if<bool>() ? "true" : "false";
            return;
        case StateKind::kInt:
            text_.json += std::to_string(*node.get_if<int64_t>());
            return;
        case StateKind::kFloat:
            return put_float(text_.json, *node.get_if<double>());
        case StateKind::kString:
            return put_string(*node.get_if<std::string>(), path);
        case StateKind::kTensor:
            return put_tensor(*node.get_if<Tensor>(), depth ? path : "tensor");
        case StateKind::kList:
            return put_list(*node.get_if<StateList>(), path, depth);
        case StateKind::kDict:
            return put_dict(*node.get_if<StateDict>(), path, depth);
    }
}

void TreeWriter::put_string(const std::string &text, const std::string &path)
{
    if (!is_utf8(text))
        fail(YOKE_E_VALUE,
             "%s: the string at '%s' is not UTF-8; keep bytes in a tensor of dtype uint8", call_,
             shown_name(path).c_str());
    put_json_text(text_.json, text);
}

void TreeWriter::put_list(const StateList &list, const std::string &path, int depth)
{
    if (list.is_tuple) text_.json += R"({"$tuple":)";
    text_.json += '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
        if (i) text_.json += ',';
        put(*list.items[i], below(path, static_cast<int64_t>(i)), depth + 1);
    }
    text_.json += list.is_tuple ? "]}" : "]";
}

void TreeWriter::put_dict(const StateDict &dict, const std::string &path, int depth)
{
    const bool plain = is_plain(dict);
    text_.json += plain ? "{" : R"({"$dict":[)";
    bool first = true;
    for (const StateDict::Entry &entry : dict.entries()) {
        if (!std::exchange(first, false)) text_.json += ',';
        if (!plain) text_.json += '[';
        if (const auto *number = std::get_if<int64_t>(&entry.key))
            text_.json += std::to_string(*number);
        else
            put_json_text(text_.json, std::get<std::string>(entry.key));
        text_.json += plain ? ':' : ',';
        put(*entry.value, below(path, entry.key), depth + 1);
        if (!plain) text_.json += ']';
    }
    text_.json += plain ? "}" : "]}";
}

std::string TreeWriter::name_of(const Tensor &tensor, const std::string &path)
{
    const IntList shape = tensor->shape(), strides = tensor->strides();
    // Different tensors without elements may have the same address.
    const char *place = tensor->numel ? tensor->data : reinterpret_cast<const char *>(tensor.get());
    const auto [known, is_new] = names_.try_emplace(Identity{tensor->storage.get(),
                                                             place,
                                                             tensor->dtype,
                                                             {shape.begin(), shape.end()},
                                                             {strides.begin(), strides.end()}});
    if (!is_new) return known->second;
    std::string name = path;
    for (int more = 2; !taken_.insert(name).second; ++more)
        name = path + "~" + std::to_string(more);
    if (name == "__metadata__")
        fail(YOKE_E_VALUE,
             "%s: a tensor must not be called '__metadata__', because the format uses this name",
             call_);
    known->second = name;
    text_.tensors.emplace_back(name, tensor);
    return name;
}

void TreeWriter::put_tensor(const Tensor &tensor, const std::string &path)
{
    if (!stored_dtype(tensor->dtype))
        fail(YOKE_E_TYPE,
             "%s: the tensor at '%s' is %s, which the format does not have; cast the tensor", call_,
             shown_name(path).c_str(), info(tensor->dtype).name);
    text_.json += R"({"$tensor":)";
    put_json_text(text_.json, name_of(tensor, path));
    text_.json += '}';
}

// Returns whether a reader without trees finds each tensor under its key.
bool is_flat(const State &root, const std::vector<std::pair<std::string, Tensor>> &tensors)
{
    const auto *dict = root.get_if<StateDict>();
    if (!dict || dict->entries().size() != tensors.size()) return false;
    for (size_t i = 0; i < tensors.size(); ++i) {
        const auto *key = std::get_if<std::string>(&dict->entries()[i].key);
        if (!key || *key != tensors[i].first) return false;
        if (dict->entries()[i].value->kind() != StateKind::kTensor) return false;
    }
    return true;
}

}  // namespace

TreeText tree_text(const State &root, const char *call)
{
    TreeText text;
    TreeWriter(text, call).put(root, "", 0);
    text.is_flat = is_flat(root, text.tensors);
    return text;
}

}  // namespace yoke
