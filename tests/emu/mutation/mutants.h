// All mutants of the kernels in a module: every place that mutants.py changes asks here for the mutant to run.
//
// A comparison `a < b` is written `a < compare<Op::kLess>(17) > b`, and `a == b` in this way with `==` twice. This
// binds as the plain operator does, so no expression has to be taken apart. If mutant 17 is chosen, the comparison is
// the neighbouring operator. Comparisons during compilation are unchanged.
#pragma once

#include <cstdint>
#include <type_traits>

namespace yoke::mutants {

constexpr int kMost = 4092;

// State shared with the runner: the mutant to be (0: no mutant), and the places run since the runner's last look.
struct State {
    int32_t chosen;
    unsigned char ran[kMost];
};
extern State *g_state __attribute__((visibility("hidden")));

__attribute__((always_inline)) inline bool is(int number)
{
    g_state->ran[number] = 1;
    return g_state->chosen == number;
}

enum class Op { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };

template <Op op>
struct Comparison {
    int number;
};

template <Op op>
constexpr Comparison<op> compare(int number)
{
    return {number};
}

template <Op op, class A, class B>
__attribute__((always_inline)) constexpr bool holds(const A &a, const B &b)
{
    if constexpr (op == Op::kLess) return a < b;
    if constexpr (op == Op::kLessEqual) return a <= b;
    if constexpr (op == Op::kGreater) return a > b;
    if constexpr (op == Op::kGreaterEqual) return a >= b;
    if constexpr (op == Op::kEqual) return a == b;
    if constexpr (op == Op::kNotEqual) return a != b;
}

// < as <=, > as >=, == as !=, and back: the enumerators stand in pairs.
constexpr Op shifted(Op op)
{
    return static_cast<Op>(static_cast<int>(op) ^ 1);
}

template <Op op, class A>
struct Left {
    A a;
    int number;

    template <class B>
    __attribute__((always_inline)) constexpr bool with(const B &b) const
    {
        if (std::is_constant_evaluated()) return holds<op>(a, b);
        return is(number) ? holds<shifted(op)>(a, b) : holds<op>(a, b);
    }
};

template <class A, Op op>
__attribute__((always_inline)) constexpr Left<op, A> operator<(A a, Comparison<op> c)
{
    return {a, c.number};
}
template <class A, Op op>
__attribute__((always_inline)) constexpr Left<op, A> operator==(A a, Comparison<op> c)
{
    return {a, c.number};
}
template <Op op, class A, class B>
__attribute__((always_inline)) constexpr bool operator>(Left<op, A> left, B b)
{
    return left.with(b);
}
template <Op op, class A, class B>
__attribute__((always_inline)) constexpr bool operator==(Left<op, A> left, B b)
{
    return left.with(b);
}

// The 1 of "+ 1" and "- 1".
__attribute__((always_inline)) constexpr int one(int number)
{
    if (std::is_constant_evaluated()) return 1;
    return is(number) ? 0 : 1;
}

// Returns false in mutant `number`, which leaves out a barrier or takes the second of two expressions.
__attribute__((always_inline)) constexpr bool stays(int number)
{
    return std::is_constant_evaluated() || !is(number);
}

}  // namespace yoke::mutants
