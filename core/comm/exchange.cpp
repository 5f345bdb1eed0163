#include "core/comm/exchange.h"

#include "core/comm/numbers.h"
#include "core/ops/move.h"
#include "core/state/tree_text.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace yoke {

namespace {

using Numbers = std::vector<int64_t>;

void send(Group &group, int32_t root, const Tensor &tensor)
{
    if (tensor->numel) group.run({YOKE_COMM_BROADCAST, -1, root, tensor, tensor}, false);
}

// Returns the tensor in host memory. The other ranks do not know the root's device, so all ranks pass host memory.
Tensor on_host(const Tensor &tensor)
{
    return tensor->device->host ? tensor : move_to(*tensor, open_device("cpu"), false);
}

// A tree without its tensors' elements: numbers, and a text of the tree and of the tensors' names.
struct Outline {
    Numbers
        numbers;  // size of the tree's text; per tensor: dtype, length of the name, axes, and their sizes
    std::string text;
};

Outline outline_of(const TreeText &tree)
{
    Outline outline{{std::ssize(tree.json)}, tree.json};
    for (const auto &[name, tensor] : tree.tensors) {
        const IntList shape = tensor->shape();
        outline.numbers.insert(outline.numbers.end(),
                               {tensor->dtype, std::ssize(name), std::ssize(shape)});
        outline.numbers.insert(outline.numbers.end(), shape.begin(), shape.end());
        outline.text += name;
    }
    return outline;
}

TreeText tree_of(const Outline &outline, const char *call)
{
    TreeText tree;
    const Numbers &numbers = outline.numbers;
    size_t at = static_cast<size_t>(numbers[0]);
    tree.json = outline.text.substr(0, at);
    for (size_t next = 1; next < numbers.size();) {
        const auto dtype = static_cast<yoke_dtype>(numbers[next]);
        const auto length = static_cast<size_t>(numbers[next + 1]),
                   axes = static_cast<size_t>(numbers[next + 2]);
        const std::string name = outline.text.substr(std::exchange(at, at + length), length);
        const IntList shape(numbers.data() + next + 3, axes);
        tree.tensors.emplace_back(name, make_tensor(open_device("cpu"), dtype, shape, call));
        next += 3 + axes;
    }
    return tree;
}

size_t numbers_for(size_t bytes)
{
    return (bytes + sizeof(int64_t) - 1) / sizeof(int64_t);
}

Outline outline_from(Group &group, int32_t root, Outline mine, const char *call)
{
    const Numbers sizes =
        from_rank(group, root, {std::ssize(mine.numbers), std::ssize(mine.text)}, call);
    mine.numbers.resize(static_cast<size_t>(sizes[0]));
    const auto bytes = static_cast<size_t>(sizes[1]);
    Numbers text = packed(mine.text, numbers_for(bytes));
    mine.numbers = from_rank(group, root, mine.numbers, call);
    text = from_rank(group, root, text, call);
    mine.text.assign(reinterpret_cast<const char *>(text.data()), bytes);
    return mine;
}

}  // namespace

Numbers gathered(Group &group, const Numbers &mine, const char *call)
{
    const Tensor out = tensor_of(Numbers(mine.size() * static_cast<size_t>(group.size())), call);
    group.run({YOKE_COMM_ALL_GATHER, -1, -1, tensor_of(mine, call), out}, false);
    return numbers_of<int64_t>(out, call);
}

Numbers from_rank(Group &group, int32_t root, const Numbers &mine, const char *call)
{
    const Tensor both = tensor_of(mine, call);
    send(group, root, both);
    return numbers_of<int64_t>(both, call);
}

Numbers packed(const std::string &text, size_t length)
{
    Numbers numbers(length);
    memcpy(numbers.data(), text.data(), std::min(text.size(), length * sizeof(int64_t)));
    return numbers;
}

std::string unpacked(const int64_t *numbers, size_t length)
{
    const auto *text = reinterpret_cast<const char *>(numbers);
    return {text, strnlen(text, length * sizeof(int64_t))};
}

Ref<State> state_from(Group &group, int32_t root, const Ref<State> &mine, const char *call)
{
    const bool is_root = group.rank() == root;
    TreeText tree;
    if (is_root) tree = tree_text(*mine, call);
    const Outline outline = outline_from(group, root, outline_of(tree), call);
    if (!is_root) tree = tree_of(outline, call);
    std::map<std::string_view, Tensor> named;
    for (const auto &[name, tensor] : tree.tensors) {
        send(group, root, on_host(tensor));
        named.emplace(name, tensor);
    }
    if (is_root) return mine;
    const auto find = [&](std::string_view name) {
        const auto found = named.find(name);
        return found == named.end() ? Tensor() : found->second;
    };
    return read_tree(tree.json, find, call);
}

}  // namespace yoke
