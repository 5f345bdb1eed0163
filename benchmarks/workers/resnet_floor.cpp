// Worker of resnet.py: the floor of a training step, which is the convolutions of the network, straight through oneDNN.
//
// A case is "DTYPE THREADS LAYERS", as in "bf16 2 28:32:64:3:2:1,14:64:64:3:1:1", a layer being SIDE:IN:OUT:KERNEL:
// STRIDE:DATA, where DATA says whether its input's gradient is wanted. A step is the forwards in this order, then both
// gradients from the last back.
#include <omp.h>
#include <time.h>

#include <memory>
#include <string>
#include <vector>

#include "conv_direct.h"

namespace {

class Network {
public:
    Network(yoke_dtype dtype, const char *layers)
    {
        std::vector<Conv> backward;
        for (int length = 0; *layers; layers += length + (layers[length] == ',')) {
            ConvSizes c;
            int has_data;
            if (sscanf(layers, "%ld:%ld:%ld:%ld:%ld:%d%n", &c.side, &c.in, &c.out, &c.kernel,
                       &c.stride, &has_data, &length) != 6)
                exit(1);
            convs_.push_back(std::make_unique<DirectConv>(ConvPart::kForward, dtype, c));
            backward.push_back(std::make_unique<DirectConv>(ConvPart::kWeight, dtype, c));
            if (has_data)
                backward.push_back(std::make_unique<DirectConv>(ConvPart::kData, dtype, c));
        }
        while (!backward.empty()) {
            convs_.push_back(std::move(backward.back()));
            backward.pop_back();
        }
    }

    void run(long count) const
    {
        while (count-- > 0)
            for (const Conv &conv : convs_) conv->run();
    }

private:
    using Conv = std::unique_ptr<DirectConv>;
    std::vector<Conv> convs_;
};

// Returns time of the process if `of_process`, for cases with one thread, so that other work on the machine disturbs
// little.
double now(bool of_process)
{
    timespec time;
    clock_gettime(of_process ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int main()
{
    const dnnl_version_t *version = dnnl_version();
    setvbuf(stdout, nullptr, _IOLBF, 0);
    printf("oneDNN %d.%d.%d\n", version->major, version->minor, version->patch);
    // oneDNN settles a primitive's share of work when it is made: a network stays for the same case alone.
    std::unique_ptr<Network> network;
    std::string current;
    char dtype[8], layers[4096];
    long threads, count;
    while (scanf("%7s %ld %4095s %ld", dtype, &threads, layers, &count) == 4) {
        omp_set_num_threads(static_cast<int>(threads));
        const std::string name = std::string(dtype) + " " + std::to_string(threads) + " " + layers;
        if (name != current) {
            network.reset();
            network =
                std::make_unique<Network>(strcmp(dtype, "f32") == 0 ? YOKE_F32 : YOKE_BF16, layers);
            current = name;
        }
        network->run(1);
        const double start = now(threads == 1);
        network->run(count);
        printf("%.17g\n", (now(threads == 1) - start) / static_cast<double>(count));
    }
}
