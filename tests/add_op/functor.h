
// Computes x to the power of three, for the op of the test that adds an op.
struct TestCube {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        return x * x * x;
    }
};
