// refcount.h: intrusive reference counting for all objects behind a C handle.
//
// A new object has a single reference. retain and release are safe from any thread; release of the last reference
// runs the object's destroy(). Ref<T> owns a reference.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace yoke {

class RefCounted {
public:
    RefCounted(const RefCounted &) = delete;
    RefCounted &operator=(const RefCounted &) = delete;

    void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
    void release() const noexcept
    {
        // The sole owner needs no read-modify-write: no other thread holds a reference, so no other thread can retain
        // the object.
        if (refs_.load(std::memory_order_acquire) == 1 ||
            refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            const_cast<RefCounted *>(this)->destroy();
    }
    // Gives up the caller's reference. Returns false if it is the last reference; the caller still has the reference
    // then.
    bool release_unless_last() const noexcept
    {
        uint32_t count = refs_.load(std::memory_order_acquire);
        while (count > 1)
            if (refs_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel))
                return true;
        return false;
    }
    uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire); }

protected:
    RefCounted() noexcept = default;
    virtual ~RefCounted() = default;
    // Ends the object; overridden by types whose memory comes from a pool.
    virtual void destroy() noexcept { delete this; }

private:
    mutable std::atomic<uint32_t> refs_{1};
};

template <class T>
class Ref {
public:
    Ref() noexcept = default;
    Ref(std::nullptr_t) noexcept {}
    Ref(const Ref &other) noexcept : object_(other.object_)
    {
        if (object_) object_->retain();
    }
    Ref(Ref &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    template <class U>
    Ref(Ref<U> other) noexcept : object_(other.detach())
    {
    }
    ~Ref()
    {
        if (object_) object_->release();
    }
    Ref &operator=(Ref other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }

    // Takes over a reference that the caller owns.
    static Ref adopt(T *object) noexcept
    {
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    // Adds a reference to a borrowed object.
    static Ref share(T *object) noexcept
    {
        if (object) object->retain();
        return adopt(object);
    }
    // Gives the reference up to the caller.
    [[nodiscard]] T *detach() noexcept { return std::exchange(object_, nullptr); }

    T *get() const noexcept { return object_; }
    T *operator->() const noexcept { return object_; }
    T &operator*() const noexcept { return *object_; }
    // Converts to the object, so that a Ref serves as an argument for the object itself.
    operator T &() const noexcept { return *object_; }
    bool present() const noexcept { return object_ != nullptr; }
    friend bool operator==(const Ref &a, std::nullptr_t) noexcept { return a.object_ == nullptr; }

private:
    T *object_ = nullptr;
};

}  // namespace yoke
