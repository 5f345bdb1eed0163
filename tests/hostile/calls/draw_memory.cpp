// draw_memory.cpp: arguments that a call reads or fills through a pointer.
#include "draw.h"

#include <cstdio>

namespace hostile {

namespace {

const std::vector<std::string> &words(Words about)
{
    static const std::vector<std::string> lists[] = {
        /* spec */ {"cpu",
                    "auto",
                    "cuda",
                    "cuda:1",
                    "cpu:0",
                    "cpu:1",
                    "auto:min_free=8GiB",
                    "auto:n=2",
                    "auto:fallback=error",
                    "auto:wait=0s,lease",
                    "auto:name=H100,same=nvlink",
                    "uuid:GPU-1",
                    "pci:0000:65:00.0",
                    "cuda:-1",
                    "cuda:99999999999999999999",
                    "auto:min_free=99999999999999999999TiB",
                    "auto:max_util=nan",
                    "auto:,,,=",
                    "auto:wait=-1s",
                    "auto:exclude=egpu+display+mig+"},
        /* kind */ {"cpu", "cuda", "sim", "", "CPU", "cuda:0"},
        /* name */
        {"float32", "f16", "bool", "momentum", "exp_avg", "step", "master", "add", "softmax",
         "NVIDIA H200", "_relu_backward"},
        /* key */
        {"YOKE_NUM_THREADS", "YOKE_NO_CACHING", "YOKE_DEVICE", "YOKE_ALLOW_TF32", "driver", "nvml",
         "container", "visible_devices", "nvml_path", "YOKE_PLATFORMS"},
        /* value */ {"", "0", "1", "cpu", "-1", "99999999999999999999"},
        /* path */
        {"numbers.idx", "cut.idx", "damaged.idx", "/dev/null", "/", "none/such", ".",
         "a.safetensors", "b.safetensors"},
        /* folder */ {"/dev/null/x", "/proc/none", "numbers.idx", "record", "steps"},
        /* uuid */ {"GPU-1", "cuda:0", "0000:65:00.0", "MIG-", "G"},
        /* feature */ {"compute", "tensor_cores", "half"},
        /* equation */
        {"ij,jk->ik", "ij,ij->", "i,j->ij", "...i,...i->...", "ii", "ij->ji", "ij,jk,kl->il", "i->",
         "->", ",", "i->j", "iI->I", "ijk", "...", "......", "ij,jk->i k",
         "abcdefghijklmnopqrstuvwxyz"},
        /* mode */
        {"constant", "reflect", "replicate", "circular", "nearest", "bilinear", "linear", "area"},
        /* reduction */ {"mean", "sum", "none", "batchmean"},
        /* approximate */ {"none", "tanh"},
        /* activation */ {"none", "relu", "gelu", "gelu_tanh", "silu"},
        /* reduce */ {"none", "add", "multiply"},
        /* indexing */ {"ij", "xy"},
        /* interpolation */ {"linear", "lower", "higher", "midpoint", "nearest"},
        /* compute_mode */
        {"use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
         "donot_use_mm_for_euclid_dist"},
        /* amount */
        {"0.5", "0.01", "1", "2KiB", "4 MiB", "2", "0", "1e3", "3GB", "5 Gib", "-1", "0.5x"},
        /* settings */
        {"", "ask_fences:True", "ask_fences:False", "expandable_segments:True",
         "expandable_segments:False", "garbage_collection_threshold:0.5",
         "garbage_collection_threshold:0,ask_fences:True", "ask_fences:True,ask_fences:True",
         "max_split_size_mb:20"},
        /* node */
        {"", "a", "b", "a/b", "b/a/c", "0", "1", "list/0", "list", "list/1", "a~1b", "~", "a/~2",
         "a//b", "$tensor", "__metadata__", "yoke.tree", "format"},
    };
    return lists[static_cast<size_t>(about)];
}

const std::vector<std::string> &junk()
{
    static const std::vector<std::string> texts = {"",
                                                   " ",
                                                   "\xff\xfe",
                                                   "\xc3",
                                                   "%s%n",
                                                   "\xf0\x9f\x90\x82",
                                                   "none",
                                                   "-1",
                                                   "nan",
                                                   std::string(300, 'x'),
                                                   std::string(70000, ':'),
                                                   "\n",
                                                   "cpu ",
                                                   "\xed\xa0\x80",
                                                   "0x10",
                                                   "1e999"};
    return texts;
}

std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (unsigned char c : text.substr(0, 60)) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped,
                      c < 32 || c > 126 || c == '"' || c == '\\' ? "\\%03o" : "%c", c);
        out += escaped;
    }
    return out + (text.size() > 60 ? "\" /* … " + std::to_string(text.size()) + " bytes */" : "\"");
}

}  // namespace

int64_t Draw::extent()
{
    if (one_in(24)) return extreme();
    return static_cast<int64_t>(below(5));
}

// Draws the shape of the tensor drawn before: unchanged, as a single axis, with a -1, or without its first axis.
void Draw::place_shape(std::vector<int64_t> &numbers)
{
    const int64_t *shape = yoke_tensor_shape(last_tensor_);
    const int64_t ndim = yoke_tensor_ndim(last_tensor_);
    numbers.assign(shape, shape + ndim);
    const uint64_t how = below(4);
    if (how == 0) numbers.assign(1, yoke_tensor_numel(last_tensor_));
    if (how == 1 && ndim) numbers[below(static_cast<uint64_t>(ndim))] = -1;
    if (how == 2 && ndim) numbers.erase(numbers.begin());
}

const double *Draw::reals()
{
    std::vector<double> numbers;
    for (uint64_t i = below(4); i-- > 0;)
        numbers.push_back(one_in(4) ? (one_in(2) ? 1e30 : -1)
                                    : 0.5 * static_cast<double>(below(6)));
    count_ = static_cast<int64_t>(numbers.size());
    if (one_in(3)) {
        if (one_in(2)) count_ = 0;
        show("NULL");
        return nullptr;
    }
    std::string list;
    if (text_)
        for (double number : numbers) list += (list.empty() ? "" : ", ") + std::to_string(number);
    show("(double[]){%s}", list.c_str());
    auto *copy = array<double>(numbers.size());
    if (!numbers.empty()) std::memcpy(copy, numbers.data(), numbers.size() * sizeof(double));
    return copy;
}

const int64_t *Draw::ints(Ints about)
{
    std::vector<int64_t> numbers;
    if (about == Ints::kShape && last_tensor_ && one_in(2))
        place_shape(numbers);
    else
        for (uint64_t i = one_in(32) ? below(20) : below(4); i-- > 0;)
            numbers.push_back(about == Ints::kShape ? extent()
                              : one_in(24)          ? extreme()
                                                    : static_cast<int64_t>(below(6)) - 3);
    count_ = static_cast<int64_t>(numbers.size());
    if (one_in(24)) {
        if (one_in(2)) count_ = 0;
        show("NULL");
        return nullptr;
    }
    std::string list;
    if (text_)
        for (int64_t number : numbers) list += (list.empty() ? "" : ", ") + std::to_string(number);
    show("(int64_t[]){%s}", list.c_str());
    int64_t *copy = array<int64_t>(numbers.size());
    if (!numbers.empty()) std::memcpy(copy, numbers.data(), numbers.size() * sizeof(int64_t));
    return copy;
}

int64_t Draw::count()
{
    constexpr int64_t refused[] = {-1, INT64_MIN, INT32_MIN};
    if (one_in(48)) count_ = refused[below(std::size(refused))];
    if (count_ > 0 && one_in(48)) --count_;
    show("%lld", static_cast<long long>(count_));
    return count_;
}

const int64_t *Draw::optional_int()
{
    if (one_in(3)) {
        show("NULL");
        return nullptr;
    }
    int64_t *number = array<int64_t>(1);
    *number = int64();
    return number;
}

template <>
void Draw::fill(yoke_scalar &value)
{
    const uint64_t kind = below(16);
    value.kind = kind < 6    ? YOKE_ARG_INT
                 : kind < 13 ? YOKE_ARG_FLOAT
                 : kind < 15 ? YOKE_ARG_BOOL
                             : static_cast<int32_t>(below(12)) - 1;
    value.count = 0;
    const char *member = value.kind == YOKE_ARG_FLOAT ? "f" : "i";
    open(("&(yoke_scalar){" + std::to_string(value.kind) + ", 0, {." + member + " = ").c_str());
    if (value.kind == YOKE_ARG_FLOAT)
        value.v.f = real();
    else
        value.v.i = int64();
    close("}}");
}

const yoke_scalar *Draw::scalar()
{
    if (one_in(24)) {
        show("NULL");
        return nullptr;
    }
    yoke_scalar *made = array<yoke_scalar>(1);
    fill(*made);
    return made;
}

// A generator moves on with each draw, so each call has a new one.
yoke_generator *Draw::generator()
{
    if (one_in(2)) {
        show("NULL");
        return nullptr;
    }
    yoke_generator *made = array<yoke_generator>(1);
    made->seed = bits();
    made->offset = one_in(4) ? bits() : below(1000);
    show("&(yoke_generator){%llu, %llu}", static_cast<unsigned long long>(made->seed),
         static_cast<unsigned long long>(made->offset));
    return made;
}

const char *Draw::word(Words about)
{
    if (one_in(24)) {
        show("NULL");
        return nullptr;
    }
    const auto &list = about != Words::kFolder && one_in(4) ? junk() : words(about);
    const std::string &text = list[below(list.size())];
    if (text_) show("%s", quoted(text).c_str());
    return static_cast<const char *>(
        std::memcpy(bytes(text.size() + 1), text.c_str(), text.size() + 1));
}

yoke_tensor *const *Draw::tensors()
{
    const size_t count = below(4);
    count_ = static_cast<int64_t>(count);
    if (one_in(24)) {
        if (one_in(2)) count_ = 0;
        show("NULL");
        return nullptr;
    }
    open("(yoke_tensor *[]){");
    yoke_tensor **list = array<yoke_tensor *>(count);
    for (size_t i = 0; i < count; ++i) list[i] = handle<yoke_tensor>();
    close("}");
    return list;
}

const yoke_index *Draw::items()
{
    const size_t count = one_in(32) ? below(20) : below(4);
    count_ = static_cast<int64_t>(count);
    if (one_in(24)) {
        if (one_in(2)) count_ = 0;
        show("NULL");
        return nullptr;
    }
    yoke_index *list = array<yoke_index>(count);
    open("(yoke_index[]){");
    for (size_t i = 0; i < count; ++i) {
        open("{");
        list[i].kind = static_cast<int32_t>(below(one_in(24) ? 9 : 6)) - one_in(48);
        list[i].flags = static_cast<int32_t>(below(one_in(24) ? 255 : 8));
        show("%d, %d", list[i].kind, list[i].flags);
        list[i].start = int64();
        list[i].stop = int64();
        list[i].step = int64();
        list[i].tensor = handle<yoke_tensor>();
        close("}");
    }
    close("}");
    return list;
}

const char **Draw::text_out()
{
    if (one_in(64)) {
        show("NULL");
        return nullptr;
    }
    const char **text = array<const char *>(1);
    *text = nullptr;
    show("&text");
    outs_.push_back({const_cast<void **>(reinterpret_cast<const void **>(text)), nullptr, 0});
    return text;
}

yoke_tensor **Draw::list_out(int64_t room)
{
    list_capacity_ = room;
    gives_list_ = true;
    if (one_in(48)) {
        show("NULL");
        if (one_in(2)) list_capacity_ = 0;
        return nullptr;
    }
    list_ = array<yoke_tensor *>(static_cast<size_t>(list_capacity_));
    for (int64_t i = 0; i < list_capacity_; ++i) list_[i] = nullptr;
    show("(yoke_tensor *[%lld]){0}", static_cast<long long>(list_capacity_));
    return list_;
}

int64_t Draw::capacity()
{
    const int64_t said =
        one_in(48) ? -1 - static_cast<int64_t>(below(2)) * INT64_MAX : list_capacity_;
    show("%lld", static_cast<long long>(said));
    return said;
}

template <>
void Draw::fill(yoke_sgd_options &options)
{
    options.nesterov = one_in(4);
    options.lr = one_in(4) ? real() : 0.01;
    options.momentum = one_in(2) ? 0.9 : one_in(4) ? real() : 0;
    options.weight_decay = one_in(4) ? real() : 0;
    options.master_weights = one_in(3);
}

template <>
void Draw::fill(yoke_adam_options &options)
{
    options.master_weights = one_in(3);
    options.lr = one_in(4) ? real() : 0.01;
    options.beta1 = one_in(8) ? real() : 0.9;
    options.beta2 = one_in(8) ? real() : 0.99;
    options.eps = one_in(8) ? real() : 1e-8;
    options.weight_decay = one_in(4) ? real() : 0;
}

template <>
void Draw::fill(yoke_grad_scaler_options &options)
{
    options.disabled = one_in(6);
    options.scale = one_in(6) ? real() : 1024;
    options.growth_factor = one_in(6) ? real() : 2;
    options.backoff_factor = one_in(6) ? real() : 0.5;
    options.growth_interval = one_in(6) ? int64() : 3;
    options.growth_tracker = one_in(6) ? int64() : 0;
}

}  // namespace hostile
