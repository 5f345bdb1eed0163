// relaxed.h: a number that threads may read while its owner writes, used like a plain number.
#pragma once

#include <atomic>

namespace yoke {

// Number with relaxed loads and stores: a reader that does not know the writer's order gets some written value.
template <class T>
class Relaxed {
public:
    constexpr Relaxed(T value = T()) noexcept : value_(value) {}
    Relaxed(const Relaxed &other) noexcept : value_(other.load()) {}
    Relaxed &operator=(const Relaxed &other) noexcept { return *this = other.load(); }
    Relaxed &operator=(T value) noexcept
    {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    operator T() const noexcept { return load(); }

    // Sets the number to `next` if it is `known`; returns whether it was. If several threads try at once, a single
    // thread succeeds.
    bool exchange_if(T known, T next) noexcept
    {
        return value_.compare_exchange_strong(known, next);
    }

private:
    T load() const noexcept { return value_.load(std::memory_order_relaxed); }
    std::atomic<T> value_;
};

}  // namespace yoke
