
// x to the power of three: of an op that the test of adding one adds.
struct TestCube {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return x * x * x;
    }
};
