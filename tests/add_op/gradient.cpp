
// ---- An op of the tests ------------------------------------------------------------------------------------

void vjp_test_cube(TestCubeArgs a, Backward &b)
{
    b.set(a.kX, ops::mul(ops::mul(b.grad(), int64_t{3}), ops::mul(a.x(), a.x())));
}
