"""Ways to compute the same measures: the readable reference, and fused kernels for processors and CUDA devices."""
