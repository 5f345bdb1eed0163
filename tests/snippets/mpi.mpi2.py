import yoke
