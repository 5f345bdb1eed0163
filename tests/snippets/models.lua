yoke = require "yoke"
nn = yoke.nn
