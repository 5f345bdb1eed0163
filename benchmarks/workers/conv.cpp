// Worker of conv.py: a convolution, or one of its gradients, through Yoke, and straight through oneDNN.
//
// A case is "WHO KIND DTYPE SIDE IN OUT KERNEL GROUPS THREADS", as in "yoke forward f32 56 64 64 3 1 2", of 32 images
// that lie NHWC. The direct call is oneDNN's at its best: the weight in the layout of its choice, reordered in each
// call, as its owner updates it; primitives, memory objects, argument lists and scratchpads are made once.
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "yoke/yoke.h"

namespace {

void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", yoke_last_error()->message);
    exit(1);
}

struct Case {
    char kind[16], dtype[16];
    long side, in, out, kernel, groups, threads;

    bool is(const char *name) const { return strcmp(kind, name) == 0; }
    yoke_dtype type() const { return strcmp(dtype, "f32") == 0 ? YOKE_F32 : YOKE_BF16; }
    long padding() const { return kernel / 2; }
};

constexpr int64_t kImages = 32;

yoke_device *cpu()
{
    static yoke_device *const device = [] {
        yoke_device *opened;
        check(yoke_device_open("cpu", &opened));
        return opened;
    }();
    return device;
}

// ---- Yoke -----------------------------------------------------------------------------------------------------------

class Ours {
public:
    explicit Ours(const Case &c) : case_(c)
    {
        x_ = pixels(c.in), grad_ = pixels(c.out);
        const int64_t shape[] = {c.out, c.in / c.groups, c.kernel, c.kernel};
        check(yoke_randn(shape, 4, c.type(), cpu(), &weight_));
        if (c.is("forward")) return;
        check(yoke_tensor_set_requires_grad(c.is("data") ? x_ : weight_, 1));
        out_ = forward();
    }
    ~Ours()
    {
        for (yoke_tensor *tensor : {x_, weight_, grad_, out_}) yoke_tensor_release(tensor);
    }
    Ours(const Ours &) = delete;
    Ours &operator=(const Ours &) = delete;

    void run(long count) const
    {
        while (count-- > 0) yoke_tensor_release(case_.is("forward") ? forward() : gradient());
    }

private:
    yoke_tensor *pixels(int64_t channels) const
    {
        const int64_t shape[] = {kImages, case_.side, case_.side, channels}, order[] = {0, 3, 1, 2};
        yoke_tensor *lying, *out;
        check(yoke_randn(shape, 4, case_.type(), cpu(), &lying));
        check(yoke_permute(lying, order, 4, &out));
        yoke_tensor_release(lying);
        return out;
    }
    yoke_tensor *forward() const
    {
        const int64_t one[] = {1, 1}, padding[] = {case_.padding(), case_.padding()};
        yoke_tensor *out;
        check(yoke_conv2d(x_, weight_, nullptr, one, 2, padding, 2, one, 2, case_.groups, &out));
        return out;
    }
    yoke_tensor *gradient() const
    {
        yoke_tensor *input = case_.is("data") ? x_ : weight_, *gradient;
        check(yoke_grad(&out_, 1, &grad_, &input, 1, 1, &gradient));
        return gradient;
    }

    Case case_;
    yoke_tensor *x_ = nullptr, *weight_ = nullptr, *grad_ = nullptr, *out_ = nullptr;
};

// ---- oneDNN ---------------------------------------------------------------------------------------------------------

class Direct {
    using memory = dnnl::memory;

public:
    explicit Direct(const Case &c)
    {
        const auto type = c.type() == YOKE_F32 ? memory::data_type::f32 : memory::data_type::bf16;
        const auto nhwc = memory::format_tag::nhwc;
        const memory::desc x({kImages, c.in, c.side, c.side}, type, nhwc),
            out({kImages, c.out, c.side, c.side}, type, nhwc);
        const memory::dims dims = c.groups > 1 ? memory::dims{c.groups, c.out / c.groups,
                                                              c.in / c.groups, c.kernel, c.kernel}
                                               : memory::dims{c.out, c.in, c.kernel, c.kernel};
        const memory::desc plain(
            dims, type, c.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
        weight_ = memory(plain, engine_);
        x_ = memory(x, engine_), out_ = memory(out, engine_);
        for (const memory &one : {weight_, x_, out_}) fill(one, c.type());
        choose(c, x,
               memory::desc(dims, c.is("weight") ? memory::data_type::f32 : type,
                            memory::format_tag::any),
               out);
    }

    void run(long count)
    {
        while (count-- > 0) {
            if (packs_) reorder_.execute(stream_, weight_, packed_);
            product_.execute(stream_, arguments_);
            if (!packs_) reorder_.execute(stream_, packed_, weight_);
        }
        stream_.wait();
    }

private:
    // As Yoke's are: processors are quicker at multiplying zeros.
    static void fill(const memory &one, yoke_dtype dtype)
    {
        const int64_t count = (int64_t)one.get_desc().get_size() / (dtype == YOKE_F32 ? 4 : 2);
        yoke_tensor *values;
        check(yoke_randn(&count, 1, dtype, cpu(), &values));
        memcpy(one.get_data_handle(), yoke_tensor_data(values), one.get_desc().get_size());
        yoke_tensor_release(values);
    }
    void choose(const Case &c, const memory::desc &x, const memory::desc &any,
                const memory::desc &out)
    {
        using Forward = dnnl::convolution_forward;
        using Data = dnnl::convolution_backward_data;
        using Weights = dnnl::convolution_backward_weights;
        const memory::dims one{1, 1}, padding{c.padding(), c.padding()};
        const auto direct = dnnl::algorithm::convolution_direct;
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const memory::desc as_read(any.dims(), x.data_type(), memory::format_tag::any);
        const Forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, direct, x, as_read, out, one, padding, padding},
            attributes, engine_);
        packs_ = !c.is("weight");
        if (c.is("forward")) {
            settle(forward, Forward(forward), forward.weights_desc(), DNNL_ARG_SRC,
                   DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
        } else if (c.is("data")) {
            const Data::primitive_desc data({direct, x, any, out, one, padding, padding},
                                            attributes, engine_, forward);
            settle(data, Data(data), data.weights_desc(), DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
                   DNNL_ARG_DIFF_DST);
        } else {
            const Weights::primitive_desc weights({direct, x, any, out, one, padding, padding},
                                                  attributes, engine_, forward);
            settle(weights, Weights(weights), weights.diff_weights_desc(), DNNL_ARG_SRC,
                   DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST);
        }
    }
    template <class Desc>
    void settle(const Desc &desc, const dnnl::primitive &product, const memory::desc &packed, int x,
                int weight, int out)
    {
        product_ = product;
        packed_ = memory(packed, engine_);
        reorder_ = packs_ ? dnnl::reorder(weight_, packed_) : dnnl::reorder(packed_, weight_);
        arguments_ = {{x, x_},
                      {weight, packed_},
                      {out, out_},
                      {DNNL_ARG_SCRATCHPAD, memory(desc.scratchpad_desc(), engine_)}};
    }

    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    memory x_, weight_, packed_, out_;
    dnnl::primitive product_;
    dnnl::reorder reorder_;
    std::unordered_map<int, memory> arguments_;
    bool packs_ = true;
};

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Seconds of one repetition. A contestant stays for the same case again: oneDNN settles a primitive's share of work
// when it is made, for the threads of then.
template <class Contestant>
double measure(const std::string &name, const Case &c, long count)
{
    static std::string current;
    static std::unique_ptr<Contestant> one;
    if (name != current) {
        one.reset();
        one = std::make_unique<Contestant>(c);
        current = name;
    }
    one->run(1);  // the caches are this contestant's own from here on
    const double start = now();
    one->run(count);
    return (now() - start) / static_cast<double>(count);
}

}  // namespace

int main()
{
    const dnnl_version_t *version = dnnl_version();
    setvbuf(stdout, nullptr, _IOLBF, 0);
    printf("Yoke %s beside oneDNN %d.%d.%d\n", yoke_version(), version->major, version->minor,
           version->patch);
    char line[160], who[16];
    while (fgets(line, sizeof line, stdin)) {
        Case c;
        long count;
        if (sscanf(line, "%15s %15s %15s %ld %ld %ld %ld %ld %ld %ld", who, c.kind, c.dtype,
                   &c.side, &c.in, &c.out, &c.kernel, &c.groups, &c.threads, &count) != 10)
            return 1;
        check(yoke_set_num_threads(static_cast<int32_t>(c.threads)));
        omp_set_num_threads(static_cast<int>(c.threads));
        const std::string name(line, strlen(line) - std::to_string(count).size() - 1);
        printf("%.17g\n", strcmp(who, "onednn") == 0 ? measure<Direct>(name, c, count)
                                                     : measure<Ours>(name, c, count));
    }
}
