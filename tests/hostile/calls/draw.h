// draw.h: a random call: arguments, drawn by type from a seed and the call's number, and checks of the result.
#pragma once

#include "world.h"

#include <cstring>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hostile {

// Topic of a text argument, so that the drawn texts include valid texts.
enum class Words {
    kSpec,
    kKind,
    kName,
    kKey,
    kValue,
    kPath,
    kFolder,
    kUuid,
    kFeature,
    kEquation,
    kMode,
    kReduction,
    kApproximate,
    kActivation,
    kReduce,
    kIndexing,
    kInterpolation,
    kComputeMode,
    kAmount,
    kSettings,
    kNode
};
enum class Ints { kShape, kAxes };

// Call with a forbidden result: the text says which.
struct Defect : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The program has no memory for the call's arguments, so the call is not made.
struct NoRoom {};

class Draw {
public:
    // With `text` the call is written there as C, before it is made.
    Draw(World &world, uint64_t seed, int64_t number, const char *name, std::string *text);
    Draw(const Draw &) = delete;
    ~Draw();

    // ---- Numbers
    uint64_t bits();
    uint64_t below(uint64_t n) { return bits() % n; }
    bool one_in(uint64_t n) { return below(n) == 0; }
    int64_t int64();
    int64_t extreme();
    int32_t int32();
    uint32_t uint32();
    double real();
    yoke_dtype dtype();

    // ---- Handles: from a place, or NULL, or in a world of freed handles a freed handle
    template <class T>
    T *handle();
    yoke_tensor *const *tensors();
    void *native();

    // ---- Memory for reading through a pointer: exactly as long as announced
    const int64_t *ints(Ints about);
    const double *reals();
    int64_t count();  // length of the last array
    const int64_t *optional_int();
    const yoke_scalar *scalar();
    yoke_generator *generator();
    const char *word(Words about);
    const yoke_index *items();
    template <class T>
    const T *options();

    // ---- Memory for writing through a pointer
    template <class T>
    T **out();
    template <class T>
    T *number_out();
    const char **text_out();
    template <class T>
    T *record();
    // Room for `room` results: as many as are said to be, or as the call has inputs.
    yoke_tensor **list_out(int64_t room);
    int64_t room() { return static_cast<int64_t>(below(6)); }
    int64_t count_drawn() const { return count_ > 0 ? count_ : 0; }
    int64_t capacity();

    // ---- The call
    template <class... P, class... A>
    void status(yoke_status (*function)(P...), const std::tuple<A...> &arguments)
    {
        announce();
        finish(std::apply(function, arguments));
    }
    template <class R, class... P, class... A>
    void value(R (*function)(P...), const std::tuple<A...> &arguments)
    {
        announce();
        if constexpr (std::is_void_v<R>)
            std::apply(function, arguments);
        else
            look_at(std::apply(function, arguments));
    }
    template <class T>
    void release(void (*function)(T *));
    template <class T>
    void retain(T *(*function)(T *));

    // ---- For calls that are written by hand
    void announce();                                                           // before the call
    void finish(yoke_status status);                                           // after it
    void show(const char *format, ...) __attribute__((format(printf, 2, 3)));  // shows an argument
    void open(const char *text);  // begins an argument made of the following arguments
    void close(const char *text);
    void *bytes(size_t size);  // memory that lives as long as the call
    template <class T>
    T *array(size_t count)
    {
        return static_cast<T *>(bytes(count * sizeof(T)));
    }
    template <class T>
    int any_place()
    {
        return static_cast<int>(below(Places<T>::size));
    }
    yoke_tensor *last_tensor() const { return last_tensor_; }
    World &world() { return world_; }
    // An array was drawn whose length is the next argument.
    void set_count(int64_t count) { count_ = count; }

private:
    // Result. After success, its place gets the result; after failure, the result must be NULL.
    struct Out {
        void **slot;
        void (*keep)(World &world, int place, void *handle);  // NULL: it is borrowed
        int place;
    };
    // Number that must stay unchanged after a failed call.
    struct Number {
        const void *at;
        size_t size;
    };
    void *freed_one();
    template <class R>
    static void look_at(R result)
    {
        if constexpr (std::is_same_v<R, const char *>)
            if (result && std::strlen(result) > 1 << 20) throw Defect("gave a text without an end");
    }
    void failed(yoke_status status);
    int64_t extent();
    void place_shape(std::vector<int64_t> &numbers);
    template <class T>
    void fill(T &options);

    World &world_;
    uint64_t state_;
    const char *name_;
    std::string *text_;
    std::vector<void *> owned_;
    std::vector<Out> outs_;
    std::vector<Number> numbers_;
    bool gives_list_ = false;  // the length of the list is reported even if the list does not fit
    yoke_tensor **list_ = nullptr;
    int64_t list_capacity_ = 0;
    const int64_t *list_count_ = nullptr;
    yoke_tensor *last_tensor_ = nullptr;
    int64_t count_ = 0;
    const char *message_before_ = nullptr;
    int shown_ = 0;
};

template <>
void Draw::fill(yoke_sgd_options &options);
template <>
void Draw::fill(yoke_adam_options &options);
template <>
void Draw::fill(yoke_grad_scaler_options &options);
template <>
void Draw::fill(yoke_scalar &value);

template <class T>
T *Draw::handle()
{
    const uint64_t what = below(64);
    if (what == 0) {
        show("NULL");
        return nullptr;
    }
    if (what < 4 && world_.keeps_freed)
        if (void *freed = freed_one()) {
            show("(yoke_%s *)%p /* freed or foreign */", Places<T>::name, freed);
            return static_cast<T *>(freed);
        }
    const int place = any_place<T>();
    T *found = world_.places<T>().items[static_cast<size_t>(place)];
    if constexpr (std::is_same_v<T, yoke_tensor>)
        if (found) last_tensor_ = found;
    if (found)
        show("%s[%d]", Places<T>::name, place);
    else
        show("NULL /* %s[%d] */", Places<T>::name, place);
    return found;
}

template <class T>
T **Draw::out()
{
    if (one_in(64)) {
        show("NULL");
        return nullptr;
    }
    T **slot = array<T *>(1);
    *slot = reinterpret_cast<T *>(0x5A5A);
    const int place = any_place<T>();
    show("&%s[%d]", Places<T>::name, place);
    outs_.push_back(
        {reinterpret_cast<void **>(slot),
         [](World &world, int at, void *handle) { world.put(at, static_cast<T *>(handle)); },
         place});
    return slot;
}

template <class T>
T *Draw::number_out()
{
    if (one_in(64)) {
        show("NULL");
        return nullptr;
    }
    T *number = array<T>(1);
    std::memset(static_cast<void *>(number), 0x5A, sizeof(T));
    numbers_.push_back({number, sizeof(T)});
    if constexpr (std::is_same_v<T, int64_t>) list_count_ = number;
    show("&(%s){0}", std::is_same_v<T, double>    ? "double"
                     : std::is_same_v<T, int64_t> ? "int64_t"
                                                  : "int32_t");
    return number;
}

// Draws a struct with its size at the front. Now and then the size differs from this header's.
template <class T>
T *Draw::record()
{
    if (one_in(64)) {
        show("NULL");
        return nullptr;
    }
    constexpr uint32_t odd[] = {0, 1, 4, 8, sizeof(T) - 4, sizeof(T) + 8, 4096, 4097, 0xFFFFFFFFu};
    const uint32_t size = one_in(4) ? odd[below(std::size(odd))] : static_cast<uint32_t>(sizeof(T));
    // A size above the size of any version is refused before the call reads on.
    void *memory = bytes(size < 4 || size > 4096 ? sizeof(T) : size);
    std::memset(memory, 0, size < 4 || size > 4096 ? sizeof(T) : size);
    std::memcpy(memory, &size, sizeof size);
    show("&(struct){.struct_size = %u}", size);
    return static_cast<T *>(memory);
}

template <class T>
const T *Draw::options()
{
    T *options = record<T>();
    if (options && options->struct_size >= sizeof(T) && options->struct_size <= 4096)
        fill(*options);
    return options;
}

template <class T>
void Draw::release(void (*function)(T *))
{
    const int place = any_place<T>();
    T *&there = world_.places<T>().items[static_cast<size_t>(place)];
    show("%s[%d]", Places<T>::name, place);
    announce();
    T *gone = std::exchange(there, nullptr);
    function(gone);
    if (gone && world_.keeps_freed) world_.freed[world_.freed_count++ % world_.freed.size()] = gone;
}

template <class T>
void Draw::retain(T *(*function)(T *))
{
    const int from = any_place<T>(), to = any_place<T>();
    T *handle = world_.places<T>().items[static_cast<size_t>(from)];
    show("%s[%d] /* kept in %s[%d] */", Places<T>::name, from, Places<T>::name, to);
    announce();
    T *given = function(handle);
    if (given != handle) throw Defect("retain gave another handle than it got");
    world_.put(to, given);
}

// Function of the API.
struct Function {
    const char *name;
    unsigned rarity;  // a single call of so many drawn calls is made
    void (*call)(Draw &draw);
};
extern const Function kFunctions[];
extern const size_t kFunctionCount;

}  // namespace hostile
