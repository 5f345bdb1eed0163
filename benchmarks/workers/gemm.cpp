// Worker of gemm.py: square matrix products through Yoke, and straight through oneDNN from and to the same memory.
//
// A case is "WHO DTYPE SIZE THREADS", as in "yoke f32 512 2". The direct call is what oneDNN does at its best with
// plain row-major matrices: primitive, memory objects, argument list and scratchpad are made once.
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
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

// Two matrices of the same size and dtype, and their product by oneDNN alone.
class Pair {
public:
    Pair(int64_t n, yoke_dtype dtype)
    {
        const int64_t shape[] = {n, n};
        check(yoke_device_open("cpu", &cpu_));
        check(yoke_randn(shape, 2, dtype, cpu_, nullptr, &x_));
        check(yoke_randn(shape, 2, dtype, cpu_, nullptr, &y_));
        check(yoke_empty(shape, 2, dtype, cpu_, &out_));
        using dnnl::memory;
        const memory::data_type type =
            dtype == YOKE_F32 ? memory::data_type::f32 : memory::data_type::bf16;
        const memory::desc plain({n, n}, type, memory::format_tag::ab);
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const dnnl::matmul::primitive_desc described({plain, plain, plain}, attributes, engine_);
        product_ = dnnl::matmul(described);
        arguments_ = {{DNNL_ARG_SRC, memory(plain, engine_, yoke_tensor_data(x_))},
                      {DNNL_ARG_WEIGHTS, memory(plain, engine_, yoke_tensor_data(y_))},
                      {DNNL_ARG_DST, memory(plain, engine_, yoke_tensor_data(out_))},
                      {DNNL_ARG_SCRATCHPAD, memory(described.scratchpad_desc(), engine_)}};
    }
    ~Pair()
    {
        yoke_tensor_release(x_);
        yoke_tensor_release(y_);
        yoke_tensor_release(out_);
        yoke_device_release(cpu_);
    }
    Pair(const Pair &) = delete;
    Pair &operator=(const Pair &) = delete;

    void direct(long count)
    {
        while (count-- > 0) product_.execute(stream_, arguments_);
        stream_.wait();
    }

    void yoke(long count) const
    {
        while (count-- > 0) {
            yoke_tensor *out;
            check(yoke_matmul(x_, y_, &out));
            yoke_tensor_release(out);
        }
    }

private:
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    dnnl::matmul product_;
    std::unordered_map<int, dnnl::memory> arguments_;
    yoke_device *cpu_ = nullptr;
    yoke_tensor *x_ = nullptr, *y_ = nullptr, *out_ = nullptr;
};

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

int main()
{
    const dnnl_version_t *version = dnnl_version();
    std::map<std::string, Pair> pairs;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    printf("Yoke %s beside oneDNN %d.%d.%d\n", yoke_version(), version->major, version->minor,
           version->patch);
    char line[128], who[16], dtype[16];
    while (fgets(line, sizeof line, stdin)) {
        long size, threads, count;
        if (sscanf(line, "%15s %15s %ld %ld %ld", who, dtype, &size, &threads, &count) != 5)
            return 1;
        check(yoke_set_num_threads(static_cast<int32_t>(threads)));
        omp_set_num_threads(static_cast<int>(threads));
        const yoke_dtype type = strcmp(dtype, "f32") == 0 ? YOKE_F32 : YOKE_BF16;
        // A pair for each number of threads, because oneDNN divides a primitive's work at its creation.
        const std::string key =
            std::string(dtype) + " " + std::to_string(size) + " " + std::to_string(threads);
        Pair &pair = pairs.try_emplace(key, size, type).first->second;
        const bool direct = strcmp(who, "onednn") == 0;
        direct ? pair.direct(1)
               : pair.yoke(1);  // the caches are this contestant's own from here on
        const double start = now();
        direct ? pair.direct(count) : pair.yoke(count);
        printf("%.17g\n", (now() - start) / static_cast<double>(count));
    }
}
