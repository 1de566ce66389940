"""The fused kernels for processors, compiled by Numba."""
