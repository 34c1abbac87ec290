"""Steps with experts whose rows go by iterations and to helpers, against the independent truth: gradients in JAX, and what a run says
about its routes from the plan of their definition in numpy."""

import functools
import json

import numpy as np
import pytest
from chunked_plan import cut, destinations, leaf_rows, least_loaded
from expert_models import BASE, Division, Model, compare
from test_experts import TOLERANCE, Case
from tools import json_lines, losses_of, read_tensors, rewrite_dispatch, run

from plateau_truth import model
from plateau_truth.config import CORRECTION_BIAS


def options_of(chunks, capacity, slots):
    bound = f"capacity-rows={capacity} " if capacity else ""
    return f"max-chunks={chunks} {bound}helper-slots={slots} min-rows=4 imbalance-threshold=1"


@pytest.fixture(scope="module")
def softmax(tmp_path_factory):
    return Case(Model.make("softmax", tmp_path_factory.mktemp("softmax")))


def run_case(case, division, folder, *flags, steps=1, import_flags=()):
    """The lines that are printed, and the gradients of the last step."""
    step = division.build(folder / "step.mlir", case.model, *import_flags)
    output = run(
        "plateau-run", step, "--ranks", division.ranks, "--steps", steps, "--data", case.data, "--lr", 0, "--json", "--poison",
        "--init", case.model.parameters_file, "--save-gradients", folder / "gradients", *flags,
    )  # fmt: skip
    return json_lines(output), read_tensors(folder / "gradients")


DIVISIONS = [
    (Division(), options_of(4, 100, 0)),
    (Division(2, 2, 2), options_of(7, 60, 1)),
    (Division(2, 1, 1, 2, "layer"), options_of(3, 50, 0)),
    (Division(4, 2, 4, checkpoint="layer"), options_of(5, 40, 2)),
    (Division(4, 2, 2, 2, "layer"), options_of(3, 16, 1)),
    (Division(4, 4, 1, checkpoint="layer"), options_of(9, 36, 1)),
    (Division(8, 8, 8, checkpoint="layer"), options_of(2, 0, 3)),
]


@pytest.mark.parametrize("division, options", DIVISIONS, ids=str)
def test_gradients_are_those_of_the_truth(division, options, softmax, one_rank, tmp_path):
    expected_loss, expected = softmax.expected()
    lines, gradients = run_case(softmax, division, tmp_path, *rewrite_dispatch(options))
    assert losses_of(lines) == [pytest.approx(expected_loss, rel=TOLERANCE)]
    compare(gradients, expected, TOLERANCE)
    compare(gradients, one_rank, TOLERANCE)


@pytest.fixture(scope="module")
def one_rank(softmax, tmp_path_factory):
    """Gradients of the plain step on one rank."""
    return run_case(softmax, Division(), tmp_path_factory.mktemp("one"))[1]


@functools.cache
def routes_of(case):
    """[tokens, top_k] for each layer with experts."""
    return {layer: route.ids for layer, route in model.routes(case.model.config, case.model.parameters, case.inputs).items()}


@pytest.mark.parametrize(
    "ranks, expert_ranks, chunks, capacity, slots",
    [(4, 4, 3, 90, 1), (4, 4, 9, 30, 2), (4, 2, 5, 60, 1), (8, 8, 4, 0, 1), (2, 2, 1, 100, 0), (1, 1, 6, 40, 0)],
)
def test_what_a_run_says_is_the_plan(ranks, expert_ranks, chunks, capacity, slots, softmax, tmp_path):
    """The routes of the truth, the plan and the cut of their definition: the figures of the run, number by number."""
    options = options_of(chunks, capacity, slots)
    lines, _ = run_case(softmax, Division(ranks, expert_ranks, 1, checkpoint="layer"), tmp_path, *rewrite_dispatch(options))
    config = softmax.model.config
    experts, top_k, tokens = config.routing.experts, config.routing.top_k, softmax.model.tokens // ranks
    most = min(top_k, experts // expert_ranks + slots)
    held = capacity // (expert_ranks * most) if capacity else -(-tokens // chunks)  # Tokens of a leaf.
    leaves = -(-(-(-tokens // chunks)) // held)
    plans = []
    for layer, ids in routes_of(softmax).items():
        worst = {"layer": layer, "chunks": chunks, "capacity_rows": capacity or expert_ranks * most * -(-tokens // chunks)}
        for group in np.reshape(ids, (ranks // expert_ranks, expert_ranks, tokens, top_k)):
            loads = np.bincount(group.reshape(-1), minlength=experts)
            rule = {"min_rows": 4} if slots else {"threshold": (10**6, 1)}
            parts, helped = least_loaded(loads, expert_ranks, slots, **rule)
            rows = leaf_rows(destinations(group, experts, parts), chunks * leaves, expert_ranks).sum(axis=0)
            iterations = cut(rows, chunks, worst["capacity_rows"])
            mean = loads.sum() / expert_ranks
            figures = {
                "iterations": len(iterations),
                "most_received": int(max(rows[members].sum(axis=0).max() for members in iterations)),
                "moves": sum(map(len, helped)),
                "load_max_over_mean": rows.sum(axis=0).max() / mean,
                "home_load_max_over_mean": loads.reshape(expert_ranks, -1).sum(axis=1).max() / mean,
            }
            worst |= {name: max(worst.get(name, 0), value) for name, value in figures.items()}
        plans.append(worst)
    assert lines[-2]["dispatch"] == plans


# --- Routes that crowd


@pytest.mark.parametrize("slots", [0, 1])
@pytest.mark.parametrize("checkpoint", ["none", "layer"])
def test_all_tokens_go_to_one_rank(slots, checkpoint, tmp_path):
    """Four experts on two ranks, and every token to the two of rank 0: rank 1 gets no row, or only such as it helps with."""
    path = tmp_path / "config.json"
    fields = {"num_experts": 4, "num_hidden_layers": 2, "mlp_only_layers": [0], "scoring_func": "sigmoid", "topk_method": "noaux_tc"}
    path.write_text(json.dumps(BASE | fields))
    drawn = Model(path, tmp_path)
    bias = {f"model.layers.1.{CORRECTION_BIAS}": np.array([0, 0, -8.0, -8.0])}
    case = Case(Model(path, tmp_path, parameters=drawn.parameters | bias))
    options = options_of(5, 120, slots)
    lines, gradients = run_case(
        case, Division(2, 2, 1, checkpoint=checkpoint), tmp_path, *rewrite_dispatch(options), steps=3,
        import_flags=["--bias-update-rate", 0],
    )  # fmt: skip
    expected_loss, expected = case.expected()
    assert losses_of(lines) == [pytest.approx(expected_loss, rel=TOLERANCE)] * 3
    assert len({line["live_bytes"] for line in lines if "step" in line}) == 1
    (plan,) = lines[-2]["dispatch"]
    assert plan["home_load_max_over_mean"] == 2 and plan["load_max_over_mean"] == (1 if slots else 2)
    experts = {name: value for name, value in expected.items() if ".mlp.experts." in name}
    assert len(experts) == 2
    for name in experts:
        assert [bool(each.any()) for each in gradients[name]] == [True, True, False, False], name
    compare(gradients, expected, TOLERANCE)
