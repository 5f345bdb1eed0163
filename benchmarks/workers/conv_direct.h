// Convolution directly through oneDNN, against which conv.cpp and resnet_floor.cpp measure Yoke: at its best with
// NHWC images. The weight is in oneDNN's chosen layout, reordered in each run, as its owner updates the weight;
// primitives, memory objects, argument lists and scratchpads are made once.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "yoke/yoke.h"

constexpr int64_t kImages = 32;

inline void check(yoke_status status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", yoke_last_error()->message);
    exit(1);
}

inline yoke_device *cpu()
{
    static yoke_device *const device = [] {
        yoke_device *opened;
        check(yoke_device_open("cpu", &opened));
        return opened;
    }();
    return device;
}

// Square images and windows; the padding keeps the side, or the side divided by the stride.
struct ConvSizes {
    long side, in, out, kernel, groups = 1, stride = 1;

    long padding() const { return kernel / 2; }
    long side_out() const { return (side - 1) / stride + 1; }
};

enum class ConvPart { kForward, kData, kWeight };

class DirectConv {
    using memory = dnnl::memory;

public:
    DirectConv(ConvPart part, yoke_dtype dtype, const ConvSizes &c) : part_(part)
    {
        const auto type = dtype == YOKE_F32 ? memory::data_type::f32 : memory::data_type::bf16;
        const auto nhwc = memory::format_tag::nhwc;
        const memory::desc x({kImages, c.in, c.side, c.side}, type, nhwc),
            out({kImages, c.out, c.side_out(), c.side_out()}, type, nhwc);
        const memory::dims dims = c.groups > 1 ? memory::dims{c.groups, c.out / c.groups,
                                                              c.in / c.groups, c.kernel, c.kernel}
                                               : memory::dims{c.out, c.in, c.kernel, c.kernel};
        const memory::desc plain(
            dims, type, c.groups > 1 ? memory::format_tag::goihw : memory::format_tag::oihw);
        weight_ = memory(plain, engine_);
        x_ = memory(x, engine_), out_ = memory(out, engine_);
        for (const memory &one : {weight_, x_, out_}) fill(one, dtype);
        choose(c, x,
               memory::desc(dims, part == ConvPart::kWeight ? memory::data_type::f32 : type,
                            memory::format_tag::any),
               out);
    }

    void run(long count = 1)
    {
        const bool packs = part_ != ConvPart::kWeight;
        while (count-- > 0) {
            if (packs) reorder_.execute(stream_, weight_, packed_);
            product_.execute(stream_, arguments_);
            if (!packs) reorder_.execute(stream_, packed_, weight_);
        }
        stream_.wait();
    }

private:
    // As Yoke's are: processors are quicker at multiplying zeros.
    static void fill(const memory &one, yoke_dtype dtype)
    {
        const int64_t count = (int64_t)one.get_desc().get_size() / (dtype == YOKE_F32 ? 4 : 2);
        yoke_tensor *values;
        check(yoke_randn(&count, 1, dtype, cpu(), nullptr, &values));
        memcpy(one.get_data_handle(), yoke_tensor_data(values), one.get_desc().get_size());
        yoke_tensor_release(values);
    }
    void choose(const ConvSizes &c, const memory::desc &x, const memory::desc &any,
                const memory::desc &out)
    {
        using Forward = dnnl::convolution_forward;
        using Data = dnnl::convolution_backward_data;
        using Weights = dnnl::convolution_backward_weights;
        const memory::dims stride{c.stride, c.stride}, left{c.padding(), c.padding()};
        const long last = (c.side_out() - 1) * c.stride + c.kernel - c.side - c.padding();
        const memory::dims right{last, last};
        const auto direct = dnnl::algorithm::convolution_direct;
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const memory::desc as_read(any.dims(), x.data_type(), memory::format_tag::any);
        const Forward::primitive_desc forward(
            {dnnl::prop_kind::forward_training, direct, x, as_read, out, stride, left, right},
            attributes, engine_);
        if (part_ == ConvPart::kForward) {
            settle(forward, Forward(forward), forward.weights_desc(), DNNL_ARG_SRC,
                   DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
        } else if (part_ == ConvPart::kData) {
            const Data::primitive_desc data({direct, x, any, out, stride, left, right}, attributes,
                                            engine_, forward);
            settle(data, Data(data), data.weights_desc(), DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
                   DNNL_ARG_DIFF_DST);
        } else {
            const Weights::primitive_desc weights({direct, x, any, out, stride, left, right},
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
        reorder_ = part_ != ConvPart::kWeight ? dnnl::reorder(weight_, packed_)
                                              : dnnl::reorder(packed_, weight_);
        arguments_ = {{x, x_},
                      {weight, packed_},
                      {out, out_},
                      {DNNL_ARG_SCRATCHPAD, memory(desc.scratchpad_desc(), engine_)}};
    }

    ConvPart part_;
    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
    memory x_, weight_, packed_, out_;
    dnnl::primitive product_;
    dnnl::reorder reorder_;
    std::unordered_map<int, memory> arguments_;
};
