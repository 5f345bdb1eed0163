import yoke

x = yoke.randn(2, 3)
