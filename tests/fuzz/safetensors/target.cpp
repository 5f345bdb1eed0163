#include "tests/fuzz/safetensors/target.h"

#include "core/base/error.h"
#include "core/state/load.h"
#include "core/state/save.h"
#include "core/state/writer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace yoke::fuzz {

namespace {

[[noreturn]] void broken(const char *promise, const std::string &what)
{
    fprintf(stderr, "a promise is broken: %s: %s\n", promise, what.c_str());
    abort();
}

// A file in memory, which has a path all the same.
class MemoryFile {
public:
    explicit MemoryFile(std::string_view bytes) : file_(memfd_create("state", MFD_CLOEXEC))
    {
        if (file_ < 0) broken("there is a file to write to", strerror(errno));
        for (size_t done = 0; done < bytes.size();) {
            const ssize_t wrote = write(file_, bytes.data() + done, bytes.size() - done);
            if (wrote <= 0) broken("the file is written", strerror(errno));
            done += static_cast<size_t>(wrote);
        }
    }
    ~MemoryFile() { close(file_); }
    MemoryFile(const MemoryFile &) = delete;
    MemoryFile &operator=(const MemoryFile &) = delete;

    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

private:
    int file_;
};

bool same(const State &a, const State &b);

bool same_tensor(const yoke_tensor &a, const yoke_tensor &b)
{
    const auto shape = a.shape(), other = b.shape();
    return a.dtype == b.dtype &&
           std::equal(shape.begin(), shape.end(), other.begin(), other.end()) &&
           (a.numel == 0 || memcmp(a.data, b.data, a.nbytes()) == 0);
}

bool same_list(const StateList &a, const StateList &b)
{
    if (a.is_tuple != b.is_tuple || a.items.size() != b.items.size()) return false;
    for (size_t i = 0; i < a.items.size(); ++i)
        if (!same(*a.items[i], *b.items[i])) return false;
    return true;
}

// Compares dicts in any order, because a dict of tensors is loaded in the order of the data.
bool same_dict(const StateDict &a, const StateDict &b)
{
    if (a.entries().size() != b.entries().size()) return false;
    for (const StateDict::Entry &entry : a.entries()) {
        const State *other = b.find(entry.key);
        if (!other || !same(*entry.value, *other)) return false;
    }
    return true;
}

bool same(const State &a, const State &b)
{
    if (a.kind() != b.kind()) return false;
    if (const auto *x = a.get_if<Tensor>()) return same_tensor(**x, **b.get_if<Tensor>());
    if (const auto *x = a.get_if<StateList>()) return same_list(*x, *b.get_if<StateList>());
    if (const auto *x = a.get_if<StateDict>()) return same_dict(*x, *b.get_if<StateDict>());
    if (const auto *x = a.get_if<double>())
        return std::bit_cast<uint64_t>(*x) == std::bit_cast<uint64_t>(*b.get_if<double>());
    if (const auto *x = a.get_if<std::string>()) return *x == *b.get_if<std::string>();
    if (const auto *x = a.get_if<int64_t>()) return *x == *b.get_if<int64_t>();
    if (const auto *x = a.get_if<bool>()) return *x == *b.get_if<bool>();
    return true;
}

std::string saved(const State &state)
{
    const StateToSave to_save = StateToSave::of(state, {}, "save");
    std::string bytes = to_save.files[0].header;
    const auto take = [&](const void *from, uint64_t count) {
        bytes.append(static_cast<const char *>(from), count);
    };
    for (const Tensor &each : to_save.tensors) for_each_chunk(*each, take, "save");
    if (bytes.size() != to_save.bytes) broken("a file is as long as it was to be", bytes);
    return bytes;
}

// Null, and why in `refusal`.
template <class Read>
Ref<State> read(const std::string &path, std::string &refusal, Read call)
{
    try {
        return call();
    } catch (const Error &error) {
        refusal = error.what();
        if (error.status() != YOKE_E_CHECKPOINT) broken("it is a CheckpointError", refusal);
        if (!refusal.starts_with(path + ": ")) broken("the message names the file", refusal);
        return {};
    }
}

}  // namespace

std::string try_file(std::string_view bytes)
{
    const MemoryFile file(bytes);
    const std::string path = file.path();
    std::string refusal, of_info, of_copy;
    LoadOptions copied;
    copied.mmap = false;
    const Ref<State> state = read(path, refusal, [&] { return load_state(path, {}, "load"); });
    const Ref<State> info = read(path, of_info, [&] { return load_info(path, "load_info"); });
    const Ref<State> copy = read(path, of_copy, [&] { return load_state(path, copied, "load"); });
    if (refusal != of_copy) broken("mapped and copied, it is the same", refusal + of_copy);
    if (!state.present()) {
        if (refusal.empty()) broken("a refusal says why", path);
        return refusal.substr(path.size() + 2);
    }
    if (!info.present()) broken("what loads can be looked at", of_info);
    if (!same(*state, *copy)) broken("mapped and copied, it is the same", path);
    const MemoryFile again(saved(*state));
    const Ref<State> back =
        read(again.path(), refusal, [&] { return load_state(again.path(), {}, "load"); });
    if (!back.present()) broken("what loads saves again, and that loads", refusal);
    if (!same(*state, *back)) broken("what is saved again loads as the same", path);
    return "";
}

}  // namespace yoke::fuzz
