"""The fused kernels for CUDA devices, compiled by Triton."""
