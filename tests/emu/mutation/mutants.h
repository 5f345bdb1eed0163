// All mutants of the kernels in one module: every place that mutants.py changes asks here which mutant is to run.
//
// A comparison `a < b` is written `a < compare<Op::kLess>(17) > b` and `a == b` so with `==` twice, which binds as the
// plain operator does, so that no expression has to be taken apart; where mutant 17 is chosen, it is the neighbouring
// operator. What is computed while compiling stays as it was.
#pragma once

#include <cstdint>
#include <type_traits>

namespace yoke::mutants {

constexpr int kMost = 4092;

// Shared with the runner: which mutant to be (0: none), and which places ran since it last looked.
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

// Whether a barrier stands, or of two expressions the first.
__attribute__((always_inline)) constexpr bool stays(int number)
{
    return std::is_constant_evaluated() || !is(number);
}

}  // namespace yoke::mutants
