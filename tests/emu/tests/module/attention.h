// Attention and its gradient on the emulated device, of half or single precision by the same numbers: the former may go
// through cuDNN, the latter is always for the own kernels.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/common/numeric.h"
#include "module.h"
#include "tests/backend/launch.h"

namespace yoke::test {

enum class MaskKind { kBools, kNumbers };

struct AttentionCase {
    int64_t batch, heads, sharers, queries, keys, width, value_width;
    bool causal = false;
    bool packed = false;  // query, key and value of a row are adjacent, as from one product
    // Shape of the mask, right-aligned to [batch, heads, sharers, queries, keys]; empty: there is no mask. Its strides,
    // if they are not row-major. If `closes`, its second row forbids every key.
    std::vector<int64_t> mask = {}, mask_strides = {};
    MaskKind mask_kind = MaskKind::kBools;
    bool closes = false;
    int64_t shift = 0;  // elements by which packed rows miss an address of 16 bytes
    double dropout = 0;
    uint32_t flags = 0;
    uint64_t workspace_limit = 256 << 20;
};

inline uint16_t to_half(float x)
{
    const kernels::f16 half = kernels::store<kernels::f16>(x);
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}
inline float from_half(uint16_t bits)
{
    kernels::f16 half;
    memcpy(&half, &bits, sizeof bits);
    return static_cast<float>(kernels::load(half));
}

// [batch, heads, sharers, rows, width] in memory.
template <class T>
struct AttentionTensor {
    std::vector<int64_t> shape, strides;
    T *data = nullptr;
    size_t count = 0;  // elements of the block; 0: another tensor owns the block
};

template <class T>
class AttentionRun {
public:
    AttentionRun(void *device, const AttentionCase &asked, void *stream = nullptr)
        : device_(device), stream_(stream), c_(asked)
    {
        query_ = heads_of(c_.queries, c_.width, c_.sharers);
        result_ = heads_of(c_.queries, c_.value_width, c_.sharers);
        key_ = heads_of(c_.keys, c_.width, 1);
        value_ = heads_of(c_.keys, c_.value_width, 1);
        for (AttentionTensor<T> *shared : {&key_, &value_}) {
            shared->shape[2] = c_.sharers;
            if (c_.sharers > 1) shared->strides[2] = 0;
        }
        if (c_.packed) pack();
        gradient_ = result_;
        key_gradient_ = heads_of(c_.keys, c_.width, c_.sharers);
        value_gradient_ = heads_of(c_.keys, c_.value_width, c_.sharers);
        query_gradient_ = heads_of(c_.queries, c_.width, c_.sharers);
        if (c_.packed) query_gradient_.data = nullptr;
        double seed = 0;
        for (AttentionTensor<T> *one : {&query_, &key_, &value_, &gradient_}) fill(*one, seed += 1);
        for (AttentionTensor<T> *one :
             {&result_, &query_gradient_, &key_gradient_, &value_gradient_})
            one->data = room(one->count);
        statistics_ = reinterpret_cast<float *>(room(rows() * 4 / sizeof(T)));
        if (!c_.mask.empty()) fill_mask();
    }
    ~AttentionRun()
    {
        for (void *block : blocks_) EXPECT_EQ(Module::table()->free(device_, block, 0), YOKE_OK);
    }
    AttentionRun(const AttentionRun &) = delete;
    AttentionRun &operator=(const AttentionRun &) = delete;

    yoke_status forward()
    {
        Record record(YOKE_OP__ATTENTION, device_, stream_);
        for (const AttentionTensor<T> *one : {&query_, &key_, &value_}) in(record, *one);
        mask(record);
        out(record, result_);
        record.out(statistics_, leading());
        return finish(record);
    }
    yoke_status backward()
    {
        Record record(YOKE_OP__ATTENTION_BACKWARD, device_, stream_);
        for (const AttentionTensor<T> *one : {&gradient_, &query_, &key_, &value_})
            in(record, *one);
        mask(record);
        in(record, result_);
        record.in(static_cast<const float *>(statistics_), leading());
        for (const AttentionTensor<T> *one : {&query_gradient_, &key_gradient_, &value_gradient_})
            out(record, *one);
        return finish(record);
    }
    // Returns the result, the log-sum-exp of each row, and the gradients, one behind the other.
    std::vector<std::vector<float>> read()
    {
        std::vector<std::vector<float>> all;
        for (const AttentionTensor<T> *one :
             {&result_, &query_gradient_, &key_gradient_, &value_gradient_})
            all.push_back(numbers(*one));
        std::vector<float> rows_read(rows());
        copy(rows_read.data(), statistics_, rows() * 4, YOKE_COPY_DEVICE_TO_HOST);
        all.push_back(rows_read);
        EXPECT_EQ(Module::table()->stream_synchronize(device_, stream_), YOKE_OK);
        return all;
    }
    // Other numbers, in the same places.
    void refill(double seed)
    {
        for (AttentionTensor<T> *one : {&query_, &key_, &value_, &gradient_})
            write(*one, seed += 1);
    }

private:
    size_t rows() const
    {
        return static_cast<size_t>(c_.batch * c_.heads * c_.sharers * c_.queries);
    }
    std::vector<int64_t> leading() const { return {c_.batch, c_.heads, c_.sharers, c_.queries}; }
    AttentionTensor<T> heads_of(int64_t length, int64_t width, int64_t sharers) const
    {
        AttentionTensor<T> made;
        made.shape = {c_.batch, c_.heads, sharers, length, width};
        made.strides = row_major(made.shape);
        if (c_.packed)
            made.strides = {length * c_.heads * width, width, width, c_.heads * width, 1};
        made.count = static_cast<size_t>(c_.batch * c_.heads * sharers * length * width);
        return made;
    }
    void pack()
    {
        const int64_t row = c_.heads * c_.width;
        query_.count *= 3;
        query_.data = room(query_.count + static_cast<size_t>(c_.shift)) + c_.shift;
        for (AttentionTensor<T> *one : {&query_, &key_, &value_})
            one->strides = {c_.queries * 3 * row, c_.width, c_.width, 3 * row, 1};
        key_.data = query_.data + row;
        value_.data = key_.data + row;
        key_.count = value_.count = 0;
    }
    T *room(size_t count)
    {
        void *block = nullptr;
        EXPECT_EQ(Module::table()->alloc(device_, std::max<size_t>(count, 1) * sizeof(T), &block),
                  YOKE_OK);
        blocks_.push_back(block);
        return static_cast<T *>(block);
    }
    void copy(void *to, const void *from, uint64_t bytes, int32_t direction)
    {
        if (bytes == 0) return;
        EXPECT_EQ(Module::table()->copy(device_, to, from, bytes, direction, stream_), YOKE_OK);
        EXPECT_EQ(Module::table()->stream_synchronize(device_, stream_), YOKE_OK);
    }
    void fill(AttentionTensor<T> &tensor, double seed)
    {
        if (!tensor.data) tensor.data = room(tensor.count);
        write(tensor, seed);
    }
    // Writes each element by itself, so the memory between elements stays.
    void write(const AttentionTensor<T> &tensor, double seed)
    {
        const int64_t reach = reach_of(tensor);
        std::vector<T> memory(static_cast<size_t>(reach));
        copy(memory.data(), tensor.data, memory.size() * sizeof(T), YOKE_COPY_DEVICE_TO_HOST);
        each(tensor, [&](size_t i, size_t at) {
            const float x = from_half(
                to_half(static_cast<float>(std::sin(1.7 * static_cast<double>(at) + seed) +
                                           0.05 * static_cast<double>(i % 7))));
            if constexpr (sizeof(T) == 2)
                memory[at] = to_half(x);
            else
                memory[at] = x;
        });
        copy(tensor.data, memory.data(), memory.size() * sizeof(T), YOKE_COPY_HOST_TO_DEVICE);
    }
    std::vector<float> numbers(const AttentionTensor<T> &tensor)
    {
        std::vector<T> memory(static_cast<size_t>(reach_of(tensor)));
        copy(memory.data(), tensor.data, memory.size() * sizeof(T), YOKE_COPY_DEVICE_TO_HOST);
        std::vector<float> all;
        each(tensor, [&](size_t, size_t at) {
            if constexpr (sizeof(T) == 2)
                all.push_back(from_half(memory[at]));
            else
                all.push_back(memory[at]);
        });
        return all;
    }
    static int64_t reach_of(const AttentionTensor<T> &tensor)
    {
        for (const int64_t length : tensor.shape)
            if (length == 0) return 0;
        int64_t last = 0;
        for (size_t i = 0; i < 5; ++i) last += (tensor.shape[i] - 1) * tensor.strides[i];
        return last + 1;
    }
    template <class F>
    static void each(const AttentionTensor<T> &t, const F &run)
    {
        size_t number = 0;
        for (int64_t b = 0; b < t.shape[0]; ++b)
            for (int64_t h = 0; h < t.shape[1]; ++h)
                for (int64_t s = 0; s < t.shape[2]; ++s)
                    for (int64_t r = 0; r < t.shape[3]; ++r)
                        for (int64_t c = 0; c < t.shape[4]; ++c)
                            run(number++,
                                static_cast<size_t>(b * t.strides[0] + h * t.strides[1] +
                                                    s * t.strides[2] + r * t.strides[3] + c));
    }
    // Forbids every third key, and adds numbers to other scores.
    void fill_mask()
    {
        if (c_.mask_strides.empty()) c_.mask_strides = row_major(c_.mask);
        int64_t last = 0;
        for (size_t i = 0; i < c_.mask.size(); ++i) last += (c_.mask[i] - 1) * c_.mask_strides[i];
        const size_t count = static_cast<size_t>(last + 1);
        const int64_t keys = c_.mask.back();
        std::vector<char> bools(count);
        std::vector<T> numbers(count);
        for (size_t i = 0; i < count; ++i) {
            const auto row = static_cast<int64_t>(i) / keys;
            const bool allows = i % 3 != 1 && !(c_.closes && row == 1);
            bools[i] = allows;
            const float x =
                allows ? 0.25f * static_cast<float>(static_cast<int>(i % 9) - 4) : -INFINITY;
            if constexpr (sizeof(T) == 2)
                numbers[i] = to_half(x);
            else
                numbers[i] = x;
        }
        mask_ = room(count);
        if (c_.mask_kind == MaskKind::kBools)
            copy(mask_, bools.data(), count, YOKE_COPY_HOST_TO_DEVICE);
        else
            copy(mask_, numbers.data(), count * sizeof(T), YOKE_COPY_HOST_TO_DEVICE);
    }
    static void in(Record &record, const AttentionTensor<T> &x)
    {
        record.in(static_cast<const T *>(x.data), x.shape, x.strides);
    }
    static void out(Record &record, const AttentionTensor<T> &x)
    {
        record.out(x.data, x.shape, x.strides);
    }
    void mask(Record &record) const
    {
        if (c_.mask.empty())
            record.absent();
        else if (c_.mask_kind == MaskKind::kBools)
            record.in(reinterpret_cast<const bool *>(mask_), c_.mask, c_.mask_strides);
        else
            record.in(static_cast<const T *>(mask_), c_.mask, c_.mask_strides);
    }
    yoke_status finish(Record &record) const
    {
        return record.param(static_cast<int64_t>(c_.causal))
            .param(0.3)
            .param(c_.dropout)
            .param(int64_t{1})
            .param(int64_t{0})
            .allow(c_.flags)
            .limit_workspace(c_.workspace_limit)
            .run(*Module::table());
    }

    void *device_, *stream_;
    AttentionCase c_;
    AttentionTensor<T> query_, key_, value_, result_, gradient_, query_gradient_, key_gradient_,
        value_gradient_;
    float *statistics_;
    T *mask_ = nullptr;
    std::vector<void *> blocks_;
};

}  // namespace yoke::test
