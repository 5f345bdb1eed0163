// Worker of mlp.py: lower bound of a training step of 784-512-512-10 at batch 128.
//
// Work that every implementation needs: eight matrix products (forward with its bias, weights backward, inputs
// backward but for the first layer), directly through oneDNN with everything made once, and one pass of SGD with
// momentum over all parameters, in float32. No activation, loss, cast, data or memory management. A case is "floor
// AMP THREADS": off multiplies in float32, bf16 in bfloat16.
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <unordered_map>
#include <vector>

namespace {

using dnnl::memory;
constexpr int64_t kBatch = 128, kWidths[] = {784, 512, 512, 10};
constexpr int kLayers = 3;
using Floats = std::vector<float>;
using Type = memory::data_type;

// Numbers of either type, as raw memory.
struct Buffer {
    std::vector<char> bytes;
    size_t size;  // bytes of a number
    void *at(int64_t i) { return bytes.data() + static_cast<size_t>(i) * size; }
};

struct Matrix {
    void *data;
    memory::dims shape, strides;
    Matrix transposed() const { return {data, {shape[1], shape[0]}, {strides[1], strides[0]}}; }
};

Matrix row_major(void *data, int64_t rows, int64_t columns)
{
    return {data, {rows, columns}, {columns, 1}};
}

class Step {
public:
    explicit Step(Type type) : type_(type)
    {
        int64_t parameters = 0;
        for (int i = 0; i < kLayers; i++) parameters += kWidths[i + 1] * (kWidths[i] + 1);
        for (Floats *all : {&parameters_, &gradients_, &momenta_}) *all = random(parameters, 0.01f);
        for (Buffer *all : {&weights_, &weight_gradients_}) *all = buffer(parameters, 0.01f);
        for (int i = 0; i <= kLayers; i++) {
            values_[i] = buffer(kBatch * kWidths[i], 1);
            value_gradients_[i] = buffer(kBatch * kWidths[i], 1);
        }
        add_products();
    }

    void run(long count)
    {
        while (count-- > 0) {
            for (Product &product : products_)
                product.primitive.execute(stream_, product.arguments);
            stream_.wait();
            update();
        }
    }

private:
    struct Product {
        dnnl::matmul primitive;
        std::unordered_map<int, memory> arguments;
    };

    static Floats random(int64_t count, float bound)
    {
        std::minstd_rand random;
        std::uniform_real_distribution<float> uniform(-bound, bound);
        Floats numbers;
        for (int64_t i = 0; i < count; i++) numbers.push_back(uniform(random));
        return numbers;
    }

    // Returns the numbers in the type of the products; bfloat16 is the upper half of a float.
    Buffer buffer(int64_t count, float bound) const
    {
        const Floats numbers = random(count, bound);
        const size_t size = type_ == Type::bf16 ? 2 : 4;
        Buffer to{std::vector<char>(numbers.size() * size), size};
        for (size_t i = 0; i < numbers.size(); i++)
            memcpy(&to.bytes[i * size], reinterpret_cast<const char *>(&numbers[i]) + 4 - size,
                   size);
        return to;
    }

    // In the order of a step: forward, then from the last layer back.
    void add_products()
    {
        Matrix weights[kLayers], weight_gradients[kLayers];
        int64_t place = 0;
        for (int i = 0; i < kLayers; i++) {
            const int64_t in = kWidths[i], out = kWidths[i + 1];
            weights[i] = row_major(weights_.at(place), out, in);
            weight_gradients[i] = row_major(weight_gradients_.at(place), out, in);
            void *bias = weights_.at(place + in * out);
            add_product(value(i), weights[i].transposed(), value(i + 1), bias);
            place += out * (in + 1);
        }
        for (int i = kLayers - 1; i >= 0; i--) {
            add_product(value_gradient(i + 1).transposed(), value(i), weight_gradients[i], nullptr);
            if (i > 0) add_product(value_gradient(i + 1), weights[i], value_gradient(i), nullptr);
        }
    }

    Matrix value(int i) { return row_major(values_[i].at(0), kBatch, kWidths[i]); }
    Matrix value_gradient(int i)
    {
        return row_major(value_gradients_[i].at(0), kBatch, kWidths[i]);
    }

    memory::desc described(const Matrix &m) { return {m.shape, type_, m.strides}; }
    memory memory_of(const Matrix &m) { return memory(described(m), engine_, m.data); }

    void add_product(const Matrix &x, const Matrix &y, const Matrix &out, void *bias)
    {
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        Product product;
        product.arguments = {{DNNL_ARG_SRC, memory_of(x)},
                             {DNNL_ARG_WEIGHTS, memory_of(y)},
                             {DNNL_ARG_DST, memory_of(out)}};
        dnnl::matmul::desc wanted(described(x), described(y), described(out));
        if (bias) {
            const Matrix row = row_major(bias, 1, out.shape[1]);
            product.arguments[DNNL_ARG_BIAS] = memory_of(row);
            wanted = dnnl::matmul::desc(described(x), described(y), described(row), described(out));
        }
        const dnnl::matmul::primitive_desc settled(wanted, attributes, engine_);
        product.arguments[DNNL_ARG_SCRATCHPAD] = memory(settled.scratchpad_desc(), engine_);
        product.primitive = dnnl::matmul(settled);
        products_.push_back(product);
    }

    // The step is too small to change the parameters, however often it is taken.
    void update()
    {
        float *p = parameters_.data(), *m = momenta_.data();
        const float *g = gradients_.data();
        const int64_t count = static_cast<int64_t>(parameters_.size());
#pragma omp parallel for simd schedule(static)
        for (int64_t i = 0; i < count; i++) {
            m[i] = 0.9f * m[i] + g[i];
            p[i] -= 1e-20f * m[i];
        }
    }

    Type type_;
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    Floats parameters_, gradients_, momenta_;
    Buffer weights_, weight_gradients_, values_[kLayers + 1], value_gradients_[kLayers + 1];
    std::vector<Product> products_;
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
    // oneDNN divides a primitive's work at its creation: so there is a step for each number of threads.
    std::map<std::pair<long, bool>, Step> steps;
    setvbuf(stdout, nullptr, _IOLBF, 0);
    printf("oneDNN %d.%d.%d\n", version->major, version->minor, version->patch);
    long threads, count;
    char amp[8];
    while (scanf(" floor %7s %ld %ld", amp, &threads, &count) == 3) {
        omp_set_num_threads(static_cast<int>(threads));
        const bool mixed = strcmp(amp, "bf16") == 0;
        Step &step =
            steps.try_emplace({threads, mixed}, mixed ? Type::bf16 : Type::f32).first->second;
        step.run(1);
        const double start = now();
        step.run(count);
        printf("%.17g\n", (now() - start) / static_cast<double>(count));
    }
}
