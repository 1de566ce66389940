"""The integrals of `backends.rows` for members of any family on a device, a thread for each point; see `backends.numba.nodes`.

Two kernels, since they need different things of a panel: what follows from densities takes one node after the other, while
distribution functions at the nodes follow from the densities at all of them. Points with about as many panels should be
neighbours, since threads wait for each other.
"""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice

from uqprism.backends.fits import FITS
from uqprism.backends.rows import ROW, cumulative_rule
from uqprism.backends.triton.forms import height, level, log_share, member
from uqprism.backends.triton.planning import size_below
from uqprism.backends.triton.special import _polynomial as polynomial
from uqprism.families.base import STEEP
from uqprism.families.lattice import PER_PANEL
from uqprism.families.quadrature import gauss_legendre

NODES = 16  # of a panel: more than on a processor, so that panels may be longer
PLAIN = 1e-6  # nats above which a relative entropy keeps nine digits as a plain difference of integrals
FAINT = 1e-290  # a density below which its logarithm is taken from the levels
BAD, CLOSE = 1, 2  # flags: the integrals mean nothing; the relative entropies are too small to be plain differences

_BAD, _CLOSE = tl.constexpr(BAD), tl.constexpr(CLOSE)
_STEEP, _PLAIN, _FAINT, _NEVER, _WIDE_APART = (tl.constexpr(x) for x in (STEEP, PLAIN, FAINT, 1e20, 40.0))
_LOG_SQRT_2PI = tl.constexpr(0.5 * math.log(2.0 * math.pi))
_TAIL_ABOVE, _TAIL_BELOW = tl.constexpr(FITS.tail_above), tl.constexpr(FITS.tail_below)
_NODES, _PER_PANEL = tl.constexpr(NODES), tl.constexpr(PER_PANEL)
_AT, _WEIGHTS = (tl.constexpr(tuple(map(float, x))) for x in gauss_legendre(NODES))
_TO_NODE = tl.constexpr(tuple(map(float, cumulative_rule(NODES).ravel())))  # from densities to the integral up to each node


def _row(name: str) -> Any:
    return tl.constexpr(ROW[name])


C_OWN, C_BETWEEN = _row("crps.bayes.members"), _row("crps.excess.mixture.members")
Q_OWN, Q_BETWEEN = _row("quadratic.bayes.members"), _row("quadratic.excess.mixture.members")
L_OWN, L_BETWEEN, L_BACK = (_row(f"log.{name}") for name in ("bayes.members", "excess.mixture.members", "excess.members.mixture"))
# Of matched; those of pooled follow each.
C_SURROGATE, Q_SURROGATE = _row("crps.excess.matched.mixture"), _row("quadratic.excess.matched.mixture")
Q_OVERLAP = _row("quadratic.overlap.matched")
L_FORWARD, L_BACKWARD, L_MEMBERS = (
    _row(f"log.excess.{name}") for name in ("matched.mixture", "mixture.matched", "members.matched")
)


@triton.jit
def _entropies(log_p, log_q, larger):
    """p log(p/q) - p + q and q log(q/p) - q + p, which are nowhere negative, from the larger of the densities."""
    ratio = log_p - log_q
    size = tl.abs(ratio)
    decay = libdevice.expm1(-size)
    of_larger = size + decay
    of_smaller = tl.where(size < _WIDE_APART, -of_larger - size * decay, 1.0)
    one, other = larger * of_larger, larger * of_smaller
    ahead = ratio > 0.0
    return tl.where(ahead, one, other), tl.where(ahead, other, one)


@triton.jit
def _upper_tail(z):
    """The probability of standard normal values above z >= 0."""
    bounded = tl.minimum(z, 1e30)
    ratio = polynomial(bounded, _TAIL_ABOVE, 10) / polynomial(bounded, _TAIL_BELOW, 11)
    return tl.exp(-0.5 * z * z) * ratio


@triton.jit
def _panel(planned, k, at, active):
    """Where a panel begins, and its length, which is zero where there is none."""
    edges, stride = planned
    low = tl.load(edges + k * stride + at, mask=active, other=1.0)
    return low, tl.load(edges + (k + 1) * stride + at, mask=active, other=1.0) - low


@triton.jit
def _ends(planned, panels, at, mask):
    edges, stride = planned
    last = tl.load(edges + tl.maximum(panels, 0) * stride + at, mask=mask, other=0.0)
    return tl.load(edges + at, mask=mask, other=0.0), last


@triton.jit
def _beyond(
    tails, part, side, end, numbers, at, mask, parts, stride, LOG: tl.constexpr, COUNT: tl.constexpr, PARTS: tl.constexpr
):
    """A component's share of its member's probability beyond the lowest (side 0) or highest node, a power law.

    Returns it with its centre and the exponent.
    """
    centre = tl.load(tails + part * stride + at, mask=mask, other=0.0)
    exponent = tl.load(tails + ((1 + side) * parts + part) * stride + at, mask=mask, other=1e9)
    own = level(end, member(numbers, part, at, mask, COUNT), LOG)
    if PARTS > 1:
        own += log_share(numbers, part, at, mask, COUNT)
    held = tl.where(exponent < _STEEP, tl.exp(own) * tl.abs(end - centre) / exponent, 0.0)
    return held, centre, exponent


@triton.jit
def integrate_densities(
    out,
    status,
    mass_out,
    edges,
    panels_in,
    numbers,
    tails,
    weights,
    scales,
    centres,
    nodes,
    rule_weights,
    members,
    points,
    number_stride,
    stride,
    QUADRATIC: tl.constexpr,
    LOGS: tl.constexpr,
    SURROGATES: tl.constexpr,
    HEAVY: tl.constexpr,
    EXACT: tl.constexpr,
    MEMBERS: tl.constexpr,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    PARTS: tl.constexpr,
    LATTICE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill the quadratic and log rows, and the status.

    Relative entropies that are not small are plain differences, which need one exponential for each member and node. Others need
    the exact form, whose integrand is nowhere negative. Without MEMBERS, log rows of single members are left out. With LATTICE,
    the nodes of panels are those of sums over counts, whose sizes, so many, take the place of the tails.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    given, planned = (numbers, number_stride, stride), (edges, stride)
    panels = tl.load(panels_in + at, mask=mask, other=0)
    middle = tl.load(centres + at, mask=mask, other=0.0)
    matched, pooled = zero + 1.0, zero + 1.0
    if SURROGATES:
        matched = tl.load(scales + at, mask=mask, other=1.0)
        pooled = tl.load(scales + stride + at, mask=mask, other=1.0)
    g_height, h_height = -_LOG_SQRT_2PI - tl.log(matched), -_LOG_SQRT_2PI - tl.log(pooled)
    per_matched, per_pooled = 1.0 / matched, 1.0 / pooled

    mass, faint = zero, zero
    q_own, q_between, q_matched, q_pooled, o_matched, o_pooled = zero, zero, zero, zero, zero, zero
    l_own, l_between, l_back = zero, zero, zero
    f_matched, f_pooled, b_matched, b_pooled, m_matched, m_pooled = zero, zero, zero, zero, zero, zero
    if HEAVY:
        ends = _ends(planned, panels, at, mask)
        for i in range(members * PARTS):
            weight = tl.load(weights + i // PARTS)
            for side in tl.static_range(2):
                end = ends[side]
                held, centre, exponent = _beyond(tails, i, side, end, given, at, mask, members * PARTS, stride, LOG, COUNT, PARTS)
                share = weight * held
                mass += share
                if SURROGATES:
                    distance = tl.abs(end - centre)
                    first = tl.where(exponent > 1.0, distance / (exponent - 1.0), float("inf"))
                    second = tl.where(exponent > 2.0, distance * distance / (exponent - 2.0), float("inf"))
                    squares = (end - middle) * (end - middle) + 2.0 * second + (4.0 * side - 2.0) * (centre - middle) * first
                    f_matched += tl.where(held > 0.0, 0.5 * share * squares * per_matched * per_matched, 0.0)
                    f_pooled += tl.where(held > 0.0, 0.5 * share * squares * per_pooled * per_pooled, 0.0)

    for k in range(tl.max(panels, axis=0)):
        active = mask & (k < panels)
        low, length = _panel(planned, k, at, active)
        count, first = _NODES, tl.zeros_like(at)
        if LATTICE > 0:
            count, first = _PER_PANEL, _PER_PANEL * size_below(tails, LATTICE, length)
        for n in range(count):
            if LATTICE > 0:
                y = low + tl.load(nodes + first + n)
                measure = tl.where(active, tl.load(rule_weights + first + n), 0.0)
            else:
                y = low + length * tl.load(nodes + n)
                measure = length * tl.load(rule_weights + n)
            # The mixture's log density, relative to the highest member so that nothing underflows.
            mixture_level, p = zero, zero
            if EXACT:
                top = zero - float("inf")
                for i in range(members):
                    own = height(y, given, i, at, active, LOG, COUNT, PARTS) + tl.log(tl.load(weights + i))
                    top = tl.maximum(top, own)
                for i in range(members):
                    own = height(y, given, i, at, active, LOG, COUNT, PARTS) + tl.log(tl.load(weights + i))
                    p += tl.exp(own - top)
                mixture_level = top + tl.log(p)
                p = tl.exp(mixture_level)
            g_level, h_level, g, h = zero, zero, zero, zero
            if SURROGATES:
                z, v = (y - middle) * per_matched, (y - middle) * per_pooled
                g_level, h_level = g_height - 0.5 * z * z, h_height - 0.5 * v * v
                g, h = tl.exp(g_level), tl.exp(h_level)
            # Squares relative to the first member, so that variances between members keep their digits.
            first_density, plain, squares, own_squares, mean_level, own_level = zero, zero, zero, zero, zero, zero
            for i in range(members):
                weight = tl.load(weights + i)
                own = height(y, given, i, at, active, LOG, COUNT, PARTS)
                density = tl.exp(own)
                share = weight * density
                plain += share
                if QUADRATIC:
                    if i == 0:
                        first_density = density
                    gap = density - first_density
                    squares += weight * gap * gap
                    own_squares += share * density
                if LOGS and MEMBERS:
                    own_level += share * own
                    if EXACT:
                        one, other = _entropies(own, mixture_level, tl.maximum(density, p))
                        l_between += weight * one * measure
                        l_back += weight * other * measure
                        if SURROGATES:
                            one, _ = _entropies(g_level, own, tl.maximum(g, density))
                            m_matched += weight * one * measure
                            one, _ = _entropies(h_level, own, tl.maximum(h, density))
                            m_pooled += weight * one * measure
                    else:
                        mean_level += weight * own
            p = plain
            mass += p * measure
            if QUADRATIC:
                gap = p - first_density
                q_own += own_squares * measure
                q_between += (squares - gap * gap) * measure
                if SURROGATES:
                    q_matched += (g - p) * (g - p) * measure
                    q_pooled += (h - p) * (h - p) * measure
                    o_matched += g * p * measure
                    o_pooled += h * p * measure
            if LOGS:
                if not EXACT:
                    mixture_level = tl.log(tl.maximum(p, _FAINT))
                    if SURROGATES:
                        faint += tl.where(active & (p <= _FAINT) & (tl.maximum(g, h) > _FAINT), 1.0, 0.0)
                if MEMBERS:
                    l_own += own_level * measure
                    if not EXACT:
                        l_between += (own_level - p * mixture_level) * measure
                        l_back += p * (mixture_level - mean_level) * measure
                        if SURROGATES:
                            m_matched += (g * (g_level - mean_level) - g + p) * measure
                            m_pooled += (h * (h_level - mean_level) - h + p) * measure
                if SURROGATES:
                    one, other = _entropies(mixture_level, g_level, tl.maximum(p, g))
                    f_matched += one * measure
                    b_matched += other * measure
                    one, other = _entropies(mixture_level, h_level, tl.maximum(p, h))
                    f_pooled += one * measure
                    b_pooled += other * measure

    into = (out + at, stride, mask)
    if QUADRATIC:
        _put(into, Q_OWN, -q_own)
        _put(into, Q_BETWEEN, q_between)
        if SURROGATES:
            _put(into, Q_SURROGATE, q_matched)
            _put(into, Q_SURROGATE + 1, q_pooled)
            _put(into, Q_OVERLAP, o_matched)
            _put(into, Q_OVERLAP + 1, o_pooled)
    if LOGS:
        if MEMBERS:
            _put(into, L_OWN, -l_own)
            _put(into, L_BETWEEN, _or_never(l_between))
            _put(into, L_BACK, _or_never(l_back))
        if SURROGATES:
            _put(into, L_FORWARD, _or_never(f_matched))
            _put(into, L_FORWARD + 1, _or_never(f_pooled))
            _put(into, L_BACKWARD, _or_never(b_matched))
            _put(into, L_BACKWARD + 1, _or_never(b_pooled))
            if MEMBERS:
                _put(into, L_MEMBERS, _or_never(m_matched))
                _put(into, L_MEMBERS + 1, _or_never(m_pooled))
    close = tl.zeros_like(mask)
    if LOGS and not EXACT:
        if MEMBERS:
            close = (l_between < _PLAIN) | (l_back < _PLAIN)
        if SURROGATES:
            close = close | (faint > 0.0)
            if MEMBERS:
                close = close | (m_matched < _PLAIN) | (m_pooled < _PLAIN)
    _judge(status + at, mass_out + at, panels, mass, close, mask)


@triton.jit
def integrate_probabilities(
    out,
    status,
    mass_out,
    edges,
    panels_in,
    numbers,
    tails,
    weights,
    scales,
    centres,
    reached,
    atoms,
    members,
    points,
    number_stride,
    stride,
    SURROGATES: tl.constexpr,
    HEAVY: tl.constexpr,
    LOG: tl.constexpr,
    COUNT: tl.constexpr,
    PARTS: tl.constexpr,
    ATOMS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Fill the CRPS rows, and the status: panel by panel from the nearer end, so that tails keep their digits.

    `reached` (2, members, points) is working memory: the probability below and above of what was done.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < points
    zero = tl.zeros([BLOCK], tl.float64)
    given, planned = (numbers, number_stride, stride), (edges, stride)
    panels = tl.load(panels_in + at, mask=mask, other=0)
    middle = tl.load(centres + at, mask=mask, other=0.0)
    matched, pooled = zero + 1.0, zero + 1.0
    if SURROGATES:
        matched = tl.load(scales + at, mask=mask, other=1.0)
        pooled = tl.load(scales + stride + at, mask=mask, other=1.0)
    per_matched, per_pooled = 1.0 / matched, 1.0 / pooled

    mass, own, between, to_matched, to_pooled = zero, zero, zero, zero, zero
    ends = _ends(planned, panels, at, mask)
    for i in range(members):
        for side in tl.static_range(2):
            beyond = zero
            if HEAVY:
                for k in range(PARTS):
                    part, end = i * PARTS + k, ends[side]
                    held, centre, exponent = _beyond(
                        tails, part, side, end, given, at, mask, members * PARTS, stride, LOG, COUNT, PARTS
                    )
                    share = tl.load(weights + i) * held
                    mass += share
                    first = tl.where(exponent > 1.0, tl.abs(end - centre) / (exponent - 1.0), float("inf"))
                    own += tl.where(held > 0.0, share * first, 0.0)
                    beyond += held
            tl.store(reached + (side * members + i) * stride + at, beyond, mask=mask)
    # So many panels end at or below the centre; the others are taken from the last one down.
    upward = tl.zeros_like(panels)
    for k in range(tl.max(panels, axis=0)):
        end = tl.load(edges + (k + 1) * stride + at, mask=mask & (k < panels), other=float("inf"))
        upward += (end <= middle).to(tl.int32)

    for step in range(tl.max(panels, axis=0)):
        active = mask & (step < panels)
        up = step < upward
        low, length = _panel(planned, tl.where(up, step, panels - 1 - (step - upward)), at, active)
        start, stretch = tl.where(up, low, low + length), tl.where(up, length, -length)
        store = reached + tl.where(up, 0, members) * stride + at
        first_tail, mean_gap = _all(zero), _all(zero)
        for i in range(members):
            weight = tl.load(weights + i)
            held = tl.load(store + i * stride, mask=active, other=0.0)
            tail, whole = _all(zero), zero
            if PARTS == 1:
                found = member(given, i, at, active, COUNT)
                for n in tl.static_range(_NODES):
                    density = tl.exp(level(start + stretch * _AT[n], found, LOG))
                    whole += _WEIGHTS[n] * density
                    tail = _spread(tail, density, n)
            else:
                densities = _all(zero)
                for k in range(PARTS):
                    densities = _with_part(densities, start, stretch, given, i * PARTS + k, at, active, LOG, COUNT)
                for n in tl.static_range(_NODES):
                    whole += _WEIGHTS[n] * densities[n]
                    tail = _spread(tail, densities[n], n)
            following = held + length * whole
            tl.store(store + i * stride, following, mask=active)
            mass += weight * length * whole
            own_here, squares = zero, zero
            tail = _along(tail, held, length)
            if ATOMS:
                tail = _with_atoms(tail, start, stretch, up, atoms, i, at, active, members, stride)
            if i == 0:
                first_tail = tail
            total = ()
            for m in tl.static_range(_NODES):
                here = tail[m]
                gap = here - first_tail[m]
                own_here += _WEIGHTS[m] * here * (1.0 - here)
                squares += _WEIGHTS[m] * gap * gap
                total = total + (mean_gap[m] + weight * gap,)
            mean_gap = total
            own += weight * own_here * length
            between += weight * squares * length
        for m in tl.static_range(_NODES):
            gap = mean_gap[m]
            between -= _WEIGHTS[m] * gap * gap * length
            if SURROGATES:
                y = start + stretch * _AT[m] - middle
                mixture = first_tail[m] + gap
                gap = _tail_of_normal(y * per_matched, up) - mixture
                to_matched += _WEIGHTS[m] * gap * gap * length
                gap = _tail_of_normal(y * per_pooled, up) - mixture
                to_pooled += _WEIGHTS[m] * gap * gap * length

    into = (out + at, stride, mask)
    _put(into, C_OWN, own)
    _put(into, C_BETWEEN, between)
    if SURROGATES:
        _put(into, C_SURROGATE, to_matched)
        _put(into, C_SURROGATE + 1, to_pooled)
    _judge(status + at, mass_out + at, panels, mass, tl.zeros_like(mask), mask)


@triton.jit
def _all(x):
    """The same number for each node."""
    found = ()
    for _ in tl.static_range(_NODES):
        found = found + (x,)
    return found


@triton.jit
def _spread(integrals, density, n: tl.constexpr):
    """The integrals up to each node with what the density at node n adds."""
    found = ()
    for m in tl.static_range(_NODES):
        found = found + (integrals[m] + _TO_NODE[m * _NODES + n] * density,)
    return found


@triton.jit
def _along(integrals, held, length):
    found = ()
    for m in tl.static_range(_NODES):
        found = found + (held + length * integrals[m],)
    return found


@triton.jit
def _with_part(densities, start, stretch, numbers, part, at, mask, LOG: tl.constexpr, COUNT: tl.constexpr):
    """The densities of a mixture at the nodes with what a component adds."""
    own, weight = member(numbers, part, at, mask, COUNT), log_share(numbers, part, at, mask, COUNT)
    found = ()
    for n in tl.static_range(_NODES):
        found = found + (densities[n] + tl.exp(weight + level(start + stretch * _AT[n], own, LOG)),)
    return found


@triton.jit
def _with_atoms(tail, start, stretch, up, atoms, i, at, mask, members, stride):
    """Probabilities on the outer side of each node with those of the values that have one of their own."""
    found = ()
    for n in tl.static_range(_NODES):
        y, here = start + stretch * _AT[n], tail[n]
        for side in tl.static_range(2):
            place = tl.load(atoms + (2 * side * members + i) * stride + at, mask=mask, other=0.0)
            own = tl.load(atoms + ((2 * side + 1) * members + i) * stride + at, mask=mask, other=0.0)
            here += tl.where(tl.where(up, y > place, y < place), own, 0.0)
        found = found + (here,)
    return found


@triton.jit
def _tail_of_normal(z, up):
    """The probability of standard normal values below z, or above where not up."""
    tail = _upper_tail(tl.abs(z))
    return tl.where((z > 0.0) == up, 1.0 - tail, tail)


@triton.jit
def _put(into, row: tl.constexpr, values):
    pointer, stride, mask = into
    tl.store(pointer + row * stride, values, mask=mask)


@triton.jit
def _or_never(entropy):
    """Infinity for what a finite log density far below all others has made of it."""
    return tl.where(entropy > _NEVER, float("inf"), entropy)


@triton.jit
def _judge(status, mass_out, panels, mass, close, mask):
    """Add flags to the status, and store the mass of the mixture."""
    found = tl.where(panels < 0, _BAD, 0) | tl.where(close, _CLOSE, 0)
    tl.store(status, tl.load(status, mask=mask, other=0) | found.to(tl.int8), mask=mask)
    tl.store(mass_out, mass, mask=mask)
