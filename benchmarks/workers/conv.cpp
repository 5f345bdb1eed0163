// Worker of conv.py: a convolution, or one of its gradients, through Yoke, and directly through oneDNN.
//
// A case is "WHO KIND DTYPE SIDE IN OUT KERNEL GROUPS THREADS", as in "yoke forward f32 56 64 64 3 1 2", for 32
// images in NHWC order.
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "conv_direct.h"

namespace {

struct Case : ConvSizes {
    char kind[16], dtype[16];
    long threads;

    bool is(const char *name) const { return strcmp(kind, name) == 0; }
    yoke_dtype type() const { return strcmp(dtype, "f32") == 0 ? YOKE_F32 : YOKE_BF16; }
};

class Ours {
public:
    explicit Ours(const Case &c) : case_(c)
    {
        x_ = pixels(c.in), grad_ = pixels(c.out);
        const int64_t shape[] = {c.out, c.in / c.groups, c.kernel, c.kernel};
        check(yoke_randn(shape, 4, c.type(), cpu(), nullptr, &weight_));
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
        check(yoke_randn(shape, 4, case_.type(), cpu(), nullptr, &lying));
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

// The direct call of a case.
class Direct {
public:
    explicit Direct(const Case &c)
        : conv_(c.is("forward") ? ConvPart::kForward
                : c.is("data")  ? ConvPart::kData
                                : ConvPart::kWeight,
                c.type(), c)
    {
    }
    void run(long count) { conv_.run(count); }

private:
    DirectConv conv_;
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
    // The other contestant's threads go on looking for work for some milliseconds.
    if (c.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
