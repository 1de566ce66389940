"""Distribution functions of counts on a device, where integrals are sums over 0, 1 ...; see `backends.sums` and `numba.nodes`."""

from __future__ import annotations

import math

import triton
import triton.language as tl

from uqprism.backends.triton.bars_nodes import upper_tail_ratio
from uqprism.backends.triton.forms import height
from uqprism.backends.triton.nodes import C_BETWEEN, C_OWN, C_SURROGATE, _judge, _put
from uqprism.backends.triton.planning import size_below
from uqprism.families.lattice import PER_PANEL

NARROW_SURROGATE = 2.0  # steps: below, the distance from a Gaussian is a mean distance less two others

_NODES, _NARROW = tl.constexpr(PER_PANEL), tl.constexpr(NARROW_SURROGATE)
_INVERSE_SQRT_2PI, _INVERSE_SQRT_PI = tl.constexpr(1.0 / math.sqrt(2.0 * math.pi)), tl.constexpr(1.0 / math.sqrt(math.pi))
_SQRT_2 = tl.constexpr(math.sqrt(2.0))


@triton.jit
def sum_probabilities(
    out,
    status,
    mass_out,
    edges,
    panels_in,
    numbers,
    weights,
    scales,
    centres,
    reached,
    room,
    sizes,
    places,
    place_weights,
    from_left,
    from_right,
    nodes,
    node_weights,
    size_count,
    members,
    points,
    number_stride,
    stride,
    SURROGATES: tl.constexpr,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill the CRPS rows and the mass: panel by panel from the nearer end, so that tails keep their digits.

    `reached` (2, members, points) and `room` (4 x nodes, points) are working memory: the probability below and above of what
    was done, and at the nodes densities, the first member's probabilities, mean differences from these, and mean densities.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    given = (numbers, number_stride, stride)
    panels = tl.load(panels_in + at, mask=mask, other=0)
    middle = tl.load(centres + at, mask=mask, other=0.0)
    matched, pooled = zero + 1.0, zero + 1.0
    if SURROGATES:
        matched = tl.load(scales + at, mask=mask, other=1.0)
        pooled = tl.load(scales + stride + at, mask=mask, other=1.0)
    mass, own, between, to_matched, to_pooled = zero, zero, zero, zero, zero
    for i in range(2 * members):
        tl.store(reached + i * stride + at, zero, mask=mask)
    upward = tl.zeros_like(panels)
    for k in range(tl.max(panels, axis=0)):
        end = tl.load(edges + (k + 1) * stride + at, mask=mask & (k < panels), other=float("inf"))
        upward += (end <= middle).to(tl.int32)

    for step in range(tl.max(panels, axis=0)):
        active = mask & (step < panels)
        up = step < upward
        panel = tl.where(up, step, panels - 1 - (step - upward))
        low = tl.load(edges + panel * stride + at, mask=active, other=0.0)
        length = tl.load(edges + (panel + 1) * stride + at, mask=active, other=0.0) - low
        index = size_below(sizes, size_count, length)
        store = reached + tl.where(up, 0, members) * stride + at
        for i in range(members):
            weight = tl.load(weights + i)
            held = tl.load(store + i * stride, mask=active, other=0.0)
            # Loops in place of code that is written out, which would take minutes to compile.
            for n in range(_NODES):
                y = low + tl.load(places + index * _NODES + n, mask=active, other=0.0)
                density = tl.exp(height(y, given, i, at, active, LOG, COUNT, PARTS))
                tl.store(room + n * stride + at, density, mask=mask)
            densities = ()
            for n in tl.static_range(_NODES):
                densities = densities + (tl.load(room + n * stride + at, mask=mask, other=0.0),)
            whole = zero
            for m in range(_NODES):
                here, row = held, (index * (_NODES + 1) + 1 + m) * _NODES
                for n in tl.static_range(_NODES):
                    one = tl.load(from_left + row + n, mask=active & up, other=0.0)
                    other = tl.load(from_right + row + n, mask=active & ~up, other=0.0)
                    here += (one + other) * densities[n]
                share = tl.load(place_weights + index * _NODES + m, mask=active, other=0.0)
                density = tl.load(room + m * stride + at, mask=mask, other=0.0)
                whole += share * density
                # Relative to the first member, so that variances between members keep their digits.
                first = room + (_NODES + m) * stride + at
                if i == 0:
                    tl.store(first, here, mask=mask)
                    tl.store(first + _NODES * stride, zero, mask=mask)
                    tl.store(first + 2 * _NODES * stride, zero, mask=mask)
                gap = here - tl.load(first, mask=mask, other=0.0)
                own += weight * share * here * (1.0 - here)
                between += weight * share * gap * gap
                _more(first + _NODES * stride, weight * gap, mask)
                _more(first + 2 * _NODES * stride, weight * density, mask)
            tl.store(store + i * stride, held + whole, mask=active)
            mass += weight * whole
        for m in range(_NODES):
            share = tl.load(place_weights + index * _NODES + m, mask=active, other=0.0)
            first = room + (_NODES + m) * stride + at
            gap = tl.load(first + _NODES * stride, mask=mask, other=0.0)
            between -= share * gap * gap
            if SURROGATES:
                y = low + tl.load(places + index * _NODES + m, mask=active, other=0.0) - middle
                mixture = tl.load(first, mask=mask, other=0.0) + gap
                density = tl.load(first + 2 * _NODES * stride, mask=mask, other=0.0)
                for n in range(_NODES):
                    part, whole = tl.load(nodes + n), share * tl.load(node_weights + n)
                    to_matched += whole * _distance(y, y + part, matched, mixture, density, up)
                    to_pooled += whole * _distance(y, y + part, pooled, mixture, density, up)

    into = (out + at, stride, mask)
    _put(into, C_OWN, own)
    _put(into, C_BETWEEN, between)
    if SURROGATES:
        _put(into, C_SURROGATE, to_matched + _outside(matched, middle, own + between))
        _put(into, C_SURROGATE + 1, to_pooled + _outside(pooled, middle, own + between))
    _judge(status + at, mass_out + at, panels, mass, tl.zeros_like(mask), mask)


@triton.jit
def _more(pointer, values, mask):
    """Add to what is stored."""
    tl.store(pointer, tl.load(pointer, mask=mask, other=0.0) + values, mask=mask)


@triton.jit
def _distance(count, y, scale, mixture, density, up):
    """The squared distance at y of a Gaussian's distribution function from the mixture's step at a count, both from the mean.

    For Gaussians that are hardly wider than a step it is a mean distance less two others; see `_outside` for these.
    """
    inverse = 1.0 / scale
    narrow = scale < _NARROW
    z = tl.where(narrow, tl.abs(count), y) * inverse
    bell, ratio = tl.exp(-0.5 * z * z), upper_tail_ratio(tl.abs(z))
    gap = tl.where((z > 0.0) == up, 1.0 - bell * ratio, bell * ratio) - mixture
    return tl.where(narrow, density * scale * (z + 2.0 * bell * (_INVERSE_SQRT_2PI - z * ratio)), gap * gap)


@triton.jit
def _outside(scale, centre, distances):
    """What is left to add to a Gaussian's distance from counts: what lies below zero, or the distances within each."""
    z = tl.maximum(centre / scale, 0.0)
    ratio = upper_tail_ratio(z)
    rest = ratio * (2.0 * _INVERSE_SQRT_2PI - z * ratio) - upper_tail_ratio(_SQRT_2 * z) * _INVERSE_SQRT_PI
    return tl.where(scale < _NARROW, -distances - scale * _INVERSE_SQRT_PI, scale * tl.exp(-z * z) * rest)
