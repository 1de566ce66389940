"""The doors of `EnsemblePrediction` for models of other libraries: what they take and give; the work is done next door."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from uqprism.arrays import Array

if TYPE_CHECKING:
    from uqprism.ensemble import EnsemblePrediction


class Doors:
    """What `EnsemblePrediction` inherits to be made from other libraries' models."""

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        mean_columns: str | Sequence[str] | None = None,
        variance_columns: str | Sequence[str] | None = None,
        scale_columns: str | Sequence[str] | None = None,
        weights: Array = None,
    ) -> EnsemblePrediction:
        """Gaussian members from a table with a row per point: the columns `uqprism score` reads, without the file.

        Members are found by the names of their columns, `mean_0`, `mean_1` and so on, with `variance_0` or `scale_0` (standard
        deviations) and so on, and ordered by the numbers. Other columns, such as the target, do not matter.

        Args:
            frame: a pandas or Polars data frame, an Arrow table, or a mapping of names to columns.
            mean_columns: a pattern such as `mu{i}`, names with commas between, or a list of them; by default `mean_{i}`.
            variance_columns: the same for variances, by default `variance_{i}`.
            scale_columns: the same for standard deviations, by default `scale_{i}`; give at most one of the two.
            weights: one per member, summing to one; None means equal.

        Raises:
            InvalidValueError: columns that are missing or do not fit together, or a row with a number missing, a mean that is not
                finite or a variance not above zero; named with row and column.
        """
        from uqprism.adapters.frames import from_frame
        from uqprism.ensemble.columns import Columns

        return from_frame(frame, Columns(mean_columns, variance_columns, scale_columns), weights)

    @classmethod
    def from_sklearn(
        cls,
        model: Any,
        X: Array,
        *,
        n_members: int | None = None,
        min_samples: int = 5,
    ) -> EnsemblePrediction:
        """What a fitted model of scikit-learn, NGBoost or the like predicts for the rows of X.

        | model | members |
        |---|---|
        | `RandomForestRegressor`, `ExtraTreesRegressor` | a Gaussian for each tree: the leaf's mean and variance, see below |
        | `BaggingRegressor` | what each of its models gives, seen through the features that it was given |
        | `GaussianProcessRegressor` | `n_members` Gaussians around draws of the latent function, with the variance of the noise |
        | a list of models | one for each |
        | a model with `predict(X, return_std=True)`, such as `BayesianRidge` | one Gaussian |
        | NGBoost with `Normal` or `Laplace` | one Gaussian or Laplace distribution |
        | `DecisionTreeRegressor`, `ExtraTreeRegressor` | one Gaussian |
        | a model with `predict_ensemble(X)`, as this package's own | what that returns |

        Pipelines transform X first; a finished search (`GridSearchCV` and its kin) stands for its best model. One member is an
        ensemble too, whose excess risk is zero.

        **Trees.** The variance is that of the training targets in the leaf, as the tree saw them (bootstrapped, weighted).
        Leaves of fully grown trees hold one row or a few, which have no variance: then the nearest node towards the root counts
        that has `min_samples` distinct rows and different targets. Two biases work against each other: few rows that the tree
        itself chose to be alike understate the noise, and the rows of a larger node differ also in what can be predicted,
        which overstates it. The default of 5 was best or nearly so (log score of the mixture, within 0.1 of the best of 2 to
        50) for forests of several kinds on three public tables. Where the noise itself matters, fit with
        `min_samples_leaf` of 5 or more, so that mean and variance come from the same leaf.

        **Gaussian processes.** The noise is `alpha` plus the white part of the kernel, with `normalize_y` undone; an `alpha` up
        to scikit-learn's default of 1e-10 is no noise but jitter. The draws are not random: members lie at evenly spaced
        quantiles of the posterior at each point, so that their mean and variance are the posterior's own. Member i is no
        sample of a function: its quantile is the same everywhere. In a list or a bag, a process gives one Gaussian, with latent
        uncertainty and noise together.

        Args:
            model: fitted; or a list of fitted models.
            X: rows to predict, as the model takes them: array, data frame or sparse matrix.
            n_members: how many members to draw from a Gaussian process, 50 unless given; other models have those they have.
            min_samples: how many training rows tell a variance; for trees only.

        Raises:
            UnsupportedError: a kind of model that does not say how uncertain it is, or one with several targets.
            InvalidValueError: a model without noise: constant training targets, a standard deviation of zero.
        """
        from uqprism.adapters.sklearn import from_sklearn

        return from_sklearn(model, X, n_members=n_members, min_samples=min_samples)

    @classmethod
    def from_torch(
        cls,
        networks: Any,
        inputs: Any,
        *,
        head: Any = None,
        parameters: Any = None,
        buffers: Any = None,
        rows_at_once: int | None = None,
    ) -> EnsemblePrediction:
        """One member for each PyTorch network, predicting for inputs (rows, ...).

        The networks run in evaluation mode, on their device, and gradients flow through the result unless `torch.no_grad` is on.

        Args:
            networks: a list of modules; or one module, whose stacked `parameters` and `buffers` are those of
                `torch.func.stack_module_state`.
            inputs: a tensor, given to each of them.
            head: what their outputs (rows, n) mean, such as `natural`, by the names of `uqprism.training`. By default they
                return (mean, variance), a tensor (rows, 2) of the two, a dictionary of parameters such as
                `{"mean": ..., "scale": ...}`, or a `torch.distributions` Normal or Laplace.
            parameters: stacked parameters by name, each (members, ...).
            buffers: stacked buffers, likewise.
            rows_at_once: to bound memory.
        """
        from uqprism.adapters.torch import from_torch

        stacked = None if parameters is None else (dict(parameters), dict(buffers or {}))
        return from_torch(networks, inputs, stacked, head, rows_at_once)

    @classmethod
    def from_samples(
        cls,
        mean: Array,
        *,
        scale: Array = None,
        variance: Array = None,
        sample_dims: int | None = None,
        n_members: int | None = None,
        weights: Array = None,
    ) -> EnsemblePrediction:
        """One Gaussian member for each posterior draw of the mean and the noise, as PyMC, ArviZ, Stan or NumPyro keep them.

        These are draws of a model's parameters. For draws of the target itself (posterior predictive samples), which are not
        distributions, use `samples`.

        Args:
            mean: (draw, *points), or (chain, draw, *points) with `sample_dims=2`. An `xarray.DataArray` has its axes by name,
                `chain`, `draw` or `sample`, wherever they stand.
            scale: the standard deviation of the noise: shaped like the mean; or with the axes of the draws only, for one noise
                for all points; or a number. Next to a `DataArray`, another one with some of its dimensions, or a number.
            variance: the same for its square; give one of the two.
            sample_dims: how many leading axes count draws, 1 unless given; not for a `DataArray`.
            n_members: keep this many draws, evenly spaced; all of them unless given.
            weights: one for each draw, summing to one; None means equal.
        """
        from uqprism.adapters.posterior import from_samples

        noise = {name: x for name, x in (("scale", scale), ("variance", variance)) if x is not None}
        return from_samples(mean, noise, sample_dims, n_members, weights)
