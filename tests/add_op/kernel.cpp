
struct Cube {
    template <class T>
    T operator()(T x) const
    {
        return x * x * x;
    }
};

YOKE_KERNEL(test_cube)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return unary<T, Cube>(launch, kGrain); });
}
