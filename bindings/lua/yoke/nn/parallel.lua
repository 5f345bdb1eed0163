--- PyTorch's place of DistributedDataParallel.
return require "yoke.missing".module("nn.parallel", { DistributedDataParallel = require "yoke.parallel" })
