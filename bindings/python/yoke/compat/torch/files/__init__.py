"""PyTorch's files of tensors and containers, read and written without PyTorch."""
