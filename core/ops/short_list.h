// short_list.h: a list that lies on the stack for nearly every call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

namespace yoke {

// List of plain values, short for nearly every call. A list made with a count has no values yet.
template <class T, int Inline>
class ShortList {
public:
    explicit ShortList(size_t count = 0) : size_(count)
    {
        if (count > Inline) [[unlikely]]
            grow(count);
    }
    void push_back(const T &value)
    {
        if (size_ == capacity_) [[unlikely]]
            grow(2 * capacity_);
        items_[size_++] = value;
    }
    void clear() { size_ = 0; }
    T *data() { return items_; }
    T *begin() { return items_; }
    const T *begin() const { return items_; }
    T *end() { return items_ + size_; }
    size_t size() const { return size_; }
    T &operator[](size_t i) { return items_[i]; }

private:
    __attribute__((cold, noinline)) void grow(size_t capacity)
    {
        auto more = std::make_unique<T[]>(capacity);
        std::copy_n(items_, std::min(size_, capacity_), more.get());
        many_ = std::move(more);
        items_ = many_.get();
        capacity_ = capacity;
    }

    size_t size_ = 0, capacity_ = Inline;
    T inline_[Inline];
    T *items_ = inline_;
    std::unique_ptr<T[]> many_;
};

}  // namespace yoke
