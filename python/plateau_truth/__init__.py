"""The independent truth: a Qwen3-style training step, dense or with experts, written from its equations in JAX.

It shares nothing with the compiler: no code, no kernel, no formula of an adjoint (jax.grad derives them). Float64 is the
reference; the bfloat16 form is what a JAX user would write and serves as a yardstick for rounding.
"""

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
