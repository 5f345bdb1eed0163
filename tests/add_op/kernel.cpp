
struct Cube {
    template <class T>
    T operator()(T x) const
    {
        return x * x * x;
    }
};

yoke_status entry::test_cube(const yoke_launch *launch)
{
    return for_float(launch, "x", launch->operands[0].dtype,
                     [&]<class T>() { return unary<T, Cube>(launch, kGrain); });
}
